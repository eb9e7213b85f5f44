#include "gui/model/causes.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <functional>

#include "base/parallel_for.h"
#include "gui/model/block_graph.h"
#include "gui/model/edge_chances.h"
#include "gui/model/edge_preview.h"
#include "gui/model/fusion_search.h"
#include "gui/model/text.h"

namespace fuseline::gui {

namespace {

// Less than that is noise of the next wave, and no cause: of the block's time.
constexpr double kLeastPart = 0.001;

Cause of_edge(const OnChipEdge& edge, const std::string& tensor, const EdgePreview& preview) {
  return {.kind = CauseKind::traffic,
          .text = fmt::format("{} crosses HBM between {} and {}", tensor, edge.from, edge.to),
          .recovers = preview.saving.time,
          .hbm = preview.saving.hbm,
          .fuse = edge,
          .change = "keep it on chip",
          .operators = {edge.from, edge.to}};
}

std::optional<Cause> of_policy(const PolicyInfo& policy, const PlanEstimate& now,
                               const RunResult& other) {
  if (other.problem || !other.predicted) return std::nullopt;
  const PlanEstimate& e = *other.predicted;
  return Cause{.kind = CauseKind::policy,
               .text = fmt::format("{} fuses {}", policy.name, policy.fuses),
               .recovers = now.time - e.time,
               .hbm = (now.hbm_read + now.hbm_write) - (e.hbm_read + e.hbm_write),
               .policy = policy.name,
               .change = "add a run under " + policy.name};
}

Seconds gaps_of(const RunResult& r) {
  Seconds sum;
  for (const KernelRow& row : r.kernels)
    sum += std::min(row.estimate.launch_time, row.estimate.time);
  return sum;
}

}  // namespace

Causes causes_of(const Document& document, const RunView& run, ResultCache& cache,
                 const std::stop_token& stop, const Progress& progress) {
  Causes out;
  out.run = run.run.id;
  out.about = subject_of(run);
  if (!run.ok() || !run.result->predicted || run.run.is_measurement()) {
    out.problem = run.run.is_measurement()
                      ? "measured: choose its prediction, which says what sets each time"
                  : run.result && run.result->problem ? run.result->problem->text
                                                      : "not computed yet";
    return out;
  }
  const RunResult& r = *run.result;
  const PlanEstimate& now = *r.predicted;
  out.time = now.time;
  out.bound = now.limits.time;
  out.title = fmt::format("Why {} takes {}", run.label(), short_time(now.time));

  std::vector<std::pair<OnChipEdge, std::string>> edges;
  std::vector<OnChipEdge> asked;
  for (const GraphEdge& e : block_graph(run).edges) {
    if (!e.can_toggle || e.fused) continue;
    edges.emplace_back(e.choice, e.tensor);
    asked.push_back(e.choice);
  }
  const auto chances = edge_chances(document, run.run.id, asked, stop);
  std::erase_if(edges, [&](const auto& e) {
    const auto found = chances.find(edge_text(e.first));
    return found == chances.end() || !found->second.legal;
  });
  std::vector<PolicyInfo> others;
  const Phase phase = r.block->workload.phase;
  for (const PolicyInfo& p : policies())
    if (p.name != run.run.policy && (phase != Phase::train || p.trains)) others.push_back(p);

  std::vector<std::optional<Cause>> found(edges.size() + others.size());
  std::atomic<bool> stopped = stop.stop_requested();
  const std::stop_callback on_stop(stop, [&] { stopped = true; });
  parallel_for(found.size(),
               [&](std::size_t i) {
                 if (i < edges.size()) {
                   const EdgePreview preview =
                       preview_edge(document, run, edges[i].first, cache, stop);
                   if (preview.legal) found[i] = of_edge(edges[i].first, edges[i].second, preview);
                   return;
                 }
                 const PolicyInfo& policy = others[i - edges.size()];
                 Run other{.policy = policy.name, .setup = run.run.setup};
                 found[i] = of_policy(policy, now, *result_of(document, other, cache));
               },
               {.stop = &stopped, .progress = progress});
  throw_if_stopped(stop);
  for (std::optional<Cause>& cause : found)
    if (cause && cause->recovers / now.time > kLeastPart) out.causes.push_back(std::move(*cause));
  if (const Seconds gaps = gaps_of(r); gaps / now.time > kLeastPart)
    out.causes.push_back(
        {.kind = CauseKind::launches,
         .text = fmt::format("{} launches, with a gap before each", r.kernels.size()),
         .recovers = gaps});
  std::ranges::stable_sort(out.causes, std::greater<>(), &Cause::recovers);
  out.causes.push_back({.kind = CauseKind::limit,
                        .text = "what any schedule of this block needs on this GPU",
                        .recovers = {}});
  return out;
}

Table to_table(const Causes& causes) {
  static constexpr const char* kKinds[] = {"traffic", "policy", "launches", "limit"};
  Table table{"causes", {"run", "kind", "cause", "recovers_us", "saved_bytes", "change"}, {}};
  for (const Cause& c : causes.causes)
    add_row(table,
            {causes.title, std::string(kKinds[static_cast<int>(c.kind)]), c.text, to_us(c.recovers),
             c.hbm.value(), c.change},
            causes.about);
  return table;
}

}  // namespace fuseline::gui
