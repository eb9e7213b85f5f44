#include "gui/model/edge_chances.h"

#include "gui/model/latest_wins.h"
#include "model/bare_plan.h"

namespace fuseline::gui {

std::map<std::string, EdgeChance> edge_chances(const Document& document, RunId run,
                                               const std::vector<OnChipEdge>& edges,
                                               const std::stop_token& stop) {
  std::map<std::string, EdgeChance> chances;
  // The block is built once for all edges; the document that comes of it is of no interest.
  edit_run(document, run, [&](const Graph& block, const CustomFusion& custom) {
    const Plan plan = make_bare_plan(block, custom);
    for (const OnChipEdge& edge : edges) {
      throw_if_stopped(stop);
      if (!plan.graph.find_op(edge.from) || !plan.graph.find_op(edge.to)) continue;
      EditOutcome outcome = toggle_edge_of(plan, block, custom, edge, Suggest::no);
      chances[edge_text(edge)] = {outcome.legal, share_kernel(plan, edge),
                                  std::move(outcome.reason)};
    }
    return EditOutcome{};
  });
  return chances;
}

}  // namespace fuseline::gui
