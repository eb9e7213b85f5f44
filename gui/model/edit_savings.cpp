#include "gui/model/edit_savings.h"

#include <fmt/format.h>

#include "gui/model/delta.h"
#include "gui/model/fusion_search.h"
#include "gui/model/text.h"
#include "model/blocks/block.h"
#include "model/error.h"

namespace fuseline::gui {

Saving saving_between(const PlanEstimate& before, const PlanEstimate& after) {
  const Bytes hbm_before = before.hbm_read + before.hbm_write;
  const Bytes hbm_after = after.hbm_read + after.hbm_write;
  Saving s{.hbm = hbm_before - hbm_after, .time = before.time - after.time, .text = {}};
  const Delta bytes = delta_of(hbm_before, hbm_after), time = delta_of(before.time, after.time);
  s.text = fmt::format("HBM traffic {} ({}), time {} ({})", bytes.absolute_text,
                       bytes.relative_text, time.absolute_text, time.relative_text);
  return s;
}

std::vector<EdgeSaving> edge_savings(const RunView& run, const std::stop_token& stop,
                                     const Progress& progress) {
  FUSELINE_ASSERT(run.ok() && run.run.is_custom(), run.run.name);
  const PredictionCase& c = *run.result->block;
  const Graph block = build_block(c.model, c.workload);
  const CustomFusion& custom = run.run.custom;
  std::vector<EdgeSaving> savings;
  for (const OnChipEdge& edge : custom.on_chip) {
    throw_if_stopped(stop);
    EdgeSaving entry{.edge = edge, .saving = {}, .problem = {}};
    CustomFusion without = custom;
    std::erase(without.on_chip, edge);
    if (const auto plan = legal_plan(block, without)) {
      entry.saving = saving_between(simulate(*plan, c.gpu, c.fidelity), *run.result->predicted);
    } else {
      entry.problem = why_illegal(block, without);
    }
    savings.push_back(std::move(entry));
    if (progress) progress(savings.size(), custom.on_chip.size());
  }
  return savings;
}

}  // namespace fuseline::gui
