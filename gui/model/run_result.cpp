#include "gui/model/run_result.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "base/format.h"
#include "gui/model/run_plan.h"
#include "sim/block/residence.h"
#include "sim/gpu/plan_target.h"
#include "sim/judge/validation.h"

namespace fuseline::gui {

namespace {

bool is_policy(const std::string& name) {
  return std::ranges::any_of(policies(), [&](const PolicyInfo& p) { return p.name == name; });
}

// The plan's kernel that each launch belongs to: launches come in the plan's order, each kernel's
// own launch before those that it leaves behind.
std::vector<std::size_t> plan_kernels_of(const Plan& plan,
                                         const std::vector<KernelEstimate>& launches) {
  std::vector<std::size_t> found;
  std::size_t next = 0;
  for (const KernelEstimate& launch : launches) {
    if (next < plan.kernels.size() && plan.kernels[next].name == launch.name) ++next;
    found.push_back(next - 1);
  }
  return found;
}

void set_starts(std::vector<KernelRow>& rows) {
  Seconds now;
  for (KernelRow& row : rows) {
    row.start = now;
    now += row.estimate.time;
  }
}

void explain_plan(RunResult& result, const PlanEstimate& estimate) {
  result.explanation = explain(*result.plan);
  if (estimate.fidelity == Fidelity::hierarchy) {
    add_residence(*result.explanation, *result.plan, estimate);
  }
}

std::string source_of(const MeasurementMeta& meta) {
  std::string text = meta.title;
  for (const std::string& part :
       {meta.device, meta.driver.empty() ? "" : "driver " + meta.driver, meta.toolkit,
        meta.framework, meta.date, meta.clocks.empty() ? "" : "clocks " + meta.clocks}) {
    if (!part.empty()) text += (text.empty() ? "" : "; ") + part;
  }
  return text;
}

[[noreturn]] void nothing_measured(const BlockCase& wanted, const Measurements& measurements) {
  std::string others;
  for (const MeasuredBlock& b : measurements.blocks) {
    if (b.block.model != wanted.model || b.block.execution != wanted.execution) continue;
    const Workload& w = b.block.workload;
    others += fmt::format("{}{} {}x{}{}", others.empty() ? "" : ", ", name_of(w.phase), w.batch,
                          w.seq, w.phase == Phase::decode ? fmt::format(" of {}", w.context) : "");
  }
  throw MissingError(fmt::format(
      "{}: not measured in {}; {}", wanted.label(), measurements.path,
      others.empty() ? "nothing of this model and execution was measured there. On a machine with "
                       "the GPU, fuseline measure does it"
                     : "measured were: " + others));
}

// Launches of the trace, with what is known of the planned kernels that they correspond to.
std::vector<KernelRow> measured_rows(const MeasuredTrace& trace,
                                     const std::vector<KernelRow>& planned) {
  std::vector<KernelKind> measured_kinds, planned_kinds;
  for (const MeasuredKernel& k : trace.kernels) measured_kinds.push_back(k.kind());
  for (const KernelRow& row : planned) planned_kinds.push_back(row.estimate.kind);
  std::vector<KernelRow> rows;
  for (std::size_t i = 0; i < trace.kernels.size(); ++i) {
    const MeasuredKernel& k = trace.kernels[i];
    KernelRow row;
    row.measured = true;
    row.code = k.kernel;
    row.estimate.name = k.site.empty() ? name_of(measured_kinds[i]) : k.site;
    row.estimate.kind = measured_kinds[i];
    row.estimate.time = k.duration();  // as it ran, where that was recorded
    row.estimate.hbm_read = k.hbm_read;
    row.estimate.hbm_write = k.hbm_write;
    row.estimate.l2 = k.l2;
    rows.push_back(std::move(row));
  }
  for (const KernelPair& pair : align_kernels(measured_kinds, planned_kinds)) {
    KernelRow& row = rows[pair.measured];
    const KernelRow& twin = planned[pair.predicted];
    row.plan_kernel = twin.plan_kernel;
    row.estimate.name = twin.estimate.name;
    row.estimate.operators = twin.estimate.operators;
    row.estimate.flops = twin.estimate.flops;
    row.estimate.compulsory = twin.estimate.compulsory;
  }
  set_starts(rows);
  return rows;
}

std::vector<KernelRow> planned_rows(const Plan& plan, const PlanEstimate& estimate) {
  std::vector<KernelRow> rows;
  const std::vector<std::size_t> owners = plan_kernels_of(plan, estimate.kernels);
  for (std::size_t i = 0; i < estimate.kernels.size(); ++i) {
    rows.push_back({.estimate = estimate.kernels[i], .plan_kernel = owners[i]});
  }
  set_starts(rows);
  return rows;
}

}  // namespace

void fill_predicted(RunResult& result, const Run& run) {
  const PredictionCase& c = *result.block;
  result.plan = std::make_shared<const Plan>(plan_of(run, c));
  Prediction prediction = predict(*result.plan, c, nullptr);
  result.kernels = planned_rows(*result.plan, prediction.block);
  result.totals = totals_of(prediction.block);
  explain_plan(result, prediction.block);
  result.layers = std::move(prediction.layers);
  result.memory = prediction.memory;
  result.predicted = std::move(prediction.block);
}

void fill_measured(RunResult& result, const Run& run, const Measurements& measurements) {
  const PredictionCase& c = *result.block;
  if (measurements.meta.gpu != c.gpu.name) {
    throw MissingError(fmt::format(
        "{} was measured on {}, and the setup says {}", measurements.path,
        measurements.meta.gpu.empty() ? "an unnamed GPU" : measurements.meta.gpu, c.gpu.name));
  }
  const BlockCase wanted{c.model.name, run.policy, c.workload};
  result.measured_block = find_block(measurements, wanted);
  result.measured_trace = find_trace(measurements, wanted);
  if (!result.is_measured()) nothing_measured(wanted, measurements);
  result.source = source_of(measurements.meta);
  std::vector<KernelRow> planned;
  if (is_policy(run.policy)) {
    result.plan = std::make_shared<const Plan>(
        make_plan(run.policy, c.model, c.workload, plan_target(c.gpu)));
    result.predicted = simulate_replay(*result.plan, c);
    planned = planned_rows(*result.plan, *result.predicted);
    explain_plan(result, *result.predicted);
  }
  Totals& totals = result.totals;
  totals.has_bytes = result.measured_trace.has_value();
  if (result.measured_trace) {
    result.kernels = measured_rows(*result.measured_trace, planned);
    totals.launches = static_cast<std::int64_t>(result.kernels.size());
    for (const KernelRow& row : result.kernels) {
      totals.time += row.estimate.time;
      totals.hbm_read += row.estimate.hbm_read;
      totals.hbm_write += row.estimate.hbm_write;
      totals.l2 += row.estimate.l2;
    }
  }
  // Replays of the whole graph are timed without the profiler's clocks and gaps.
  if (result.measured_block) totals.time = result.measured_block->time.median;
  if (result.predicted) totals.flops = result.predicted->flops;
}

}  // namespace fuseline::gui
