#include "gui/model/results.h"

#include <algorithm>

namespace fuseline::gui {

namespace {

// Whether `prediction` predicts what `measurement` measured.
bool predicts(const RunView& prediction, const RunView& measurement) {
  return !prediction.run.is_measurement() && measurement.run.is_measurement() &&
         prediction.run.policy == measurement.run.policy && measurement.result->predicted &&
         same_block(*prediction.result, *measurement.result);
}

}  // namespace

bool same_work(const RunResult& a, const RunResult& b) {
  return a.block && b.block &&
         same_case({a.block->model.name, "", a.block->workload},
                   {b.block->model.name, "", b.block->workload});
}

bool same_block(const RunResult& a, const RunResult& b) {
  return same_work(a, b) && a.block->gpu.name == b.block->gpu.name;
}

std::string label_of(const std::string& name, const std::string& machine) {
  return machine.empty() ? name : name + " (" + machine + ")";
}

std::string RunView::label() const { return label_of(run.name, machine); }

const RunView* Results::find(RunId id) const {
  const auto found = std::ranges::find_if(runs, [&](const RunView& v) { return v.run.id == id; });
  return found == runs.end() ? nullptr : &*found;
}

const RunView* Results::baseline_view() const {
  const RunView* view = find(baseline);
  return view != nullptr && view->ok() ? view : nullptr;
}

ComparedTotals comparable_totals(const RunView& base, const RunView& other) {
  if (predicts(base, other)) {
    return {totals_of(*other.result->predicted), other.result->totals, true};
  }
  if (predicts(other, base)) {
    return {base.result->totals, totals_of(*base.result->predicted), true};
  }
  return {base.result->totals, other.result->totals, false};
}

Totals totals_of(const PlanEstimate& e) {
  return {.time = e.time,
          .flops = e.flops,
          .hbm_read = e.hbm_read,
          .hbm_write = e.hbm_write,
          .l2 = e.l2,
          .launches = e.launches,
          .has_bytes = true};
}

Subject subject_of(const RunView& view) {
  const std::string& policy = view.run.policy;
  const bool measured = view.run.is_measurement();
  if (view.result == nullptr || !view.result->block) {
    return {.policy = policy, .source = measured ? kMeasuredSource : ""};
  }
  const PredictionCase& block = *view.result->block;
  return subject_of(block, policy, measured ? kMeasuredSource : name_of(block.fidelity));
}

bool is_comparable(const RunView& base, const RunView& other) {
  return base.ok() && other.ok() &&
         likeness(subject_of(base), subject_of(other)) != Likeness::other_work;
}

}  // namespace fuseline::gui
