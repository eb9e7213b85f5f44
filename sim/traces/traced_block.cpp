#include "sim/traces/traced_block.h"

#include <algorithm>
#include <filesystem>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/data_files.h"
#include "base/error.h"
#include "base/format.h"
#include "base/json_text.h"

namespace fuseline {

namespace {

using nlohmann::ordered_json;

// Of blocks that were measured, no shipped policy is predicted half or twice as long as it takes.
constexpr double kFarOff = 2;

// A file of the user's keeps its place; shipped ones are known by name.
std::string name_that_lasts(const std::optional<std::string>& text, const std::string& name) {
  return text && looks_like_path(*text)
             ? std::filesystem::absolute(*text).lexically_normal().string()
             : name;
}

ordered_json spread_json(const SpreadOfTimes& t) {
  return {{"time_us", to_us(t.median)},
          {"time_us_min", to_us(t.least)},
          {"time_us_max", to_us(t.most)}};
}

void put_counters(ordered_json& out, const std::optional<LaunchCounters>& counters) {
  if (!counters) return;
  out["hbm_read_bytes"] = counters->hbm_read.value();
  out["hbm_write_bytes"] = counters->hbm_write.value();
  out["l2_bytes"] = counters->l2.value();
}

}  // namespace

BlockCase TracedBlock::block() const {
  return {.model = selection.model.name, .execution = plan.policy, .workload = selection.workload};
}

Seconds TracedBlock::measured_time() const {
  if (list.in_place) return trace.busy.median;
  Seconds sum;
  for (const MatchedLaunch& l : trace.launches) sum += l.time.median;
  return sum;
}

std::string TracedBlock::doubt() const {
  const Seconds measured = measured_time(), predicted = plan.estimate.time;
  if (measured <= Seconds() || predicted <= Seconds()) return {};
  const std::string others = "of other sizes, of another model or GPU, or of a part of the block";
  if (measured < plan.estimate.limits.time)
    return fmt::format(
        "the trace cannot be of this block: {} µs were measured, and no implementation takes less "
        "than {} µs on {}; it is {}",
        in_microseconds(measured), in_microseconds(plan.estimate.limits.time), selection.gpu.name,
        others);
  const bool faster = measured < predicted;
  const double times = faster ? predicted / measured : measured / predicted;
  if (times < kFarOff) return {};
  return fmt::format(
      "the trace is hardly of this block: {} µs were measured, {:.1f} times {} than predicted; it "
      "may be {}",
      in_microseconds(measured), times, faster ? "faster" : "slower", others);
}

Measurements TracedBlock::measurements() const {
  Measurements out;
  out.meta.gpu = selection.gpu.name;
  out.meta.device = trace.device;
  out.meta.notes = trace.notes;
  if (const std::string why = doubt(); !why.empty()) out.meta.notes.push_back(why);
  const bool counted = !trace.tensors.empty();
  if (counted) out.meta.counters = list.tool;
  if (list.in_place) {
    out.meta.notes.push_back(fmt::format(
        "times are those of {}'s trace: medians of {} blocks; of the whole block, those in which a "
        "kernel ran",
        list.tool, trace.repetitions));
  }
  if (const auto whole = measured_block(trace, list, block())) out.blocks.push_back(*whole);
  out.traces.push_back(measured_trace(trace, list, plan, block()));
  return out;
}

TracedBlock match_traced_block(const std::string& file, const SelectionWords& words,
                               const std::function<void(const std::string&, double)>& progress) {
  const bool named = (words.policy && *words.policy != "all") || words.plan;
  TracedBlock out =
      match_traced_block(file, resolve_selection(std::nullopt, words), named, progress);
  out.selection.model.name = name_that_lasts(words.model, out.selection.model.name);
  out.selection.gpu.name = name_that_lasts(words.gpu, out.selection.gpu.name);
  return out;
}

TracedBlock match_traced_block(const std::string& file, Selection selection, bool named,
                               const std::function<void(const std::string&, double)>& progress) {
  TracedBlock out{.selection = std::move(selection), .list = {}, .plan = {}, .trace = {}};
  out.list = read_launches(file);
  // A profiler's trace comes from PyTorch more often than from anything else with the same plan.
  if (!named)
    std::stable_partition(
        out.selection.policies.begin(), out.selection.policies.end(),
        [](const std::string& p) { return p == "eager" || p == "torch-compile"; });
  std::vector<CandidatePlan> candidates;
  for (const std::string& policy : out.selection.policies) {
    try {
      CandidatePlan candidate{
          .policy = policy, .plan = plan_of(out.selection, policy), .estimate = {}};
      candidate.estimate = simulate(candidate.plan, out.selection.gpu, out.selection.fidelity,
                                    {.launching = out.selection.launching});
      candidates.push_back(std::move(candidate));
    } catch (const InputError&) {
      if (named) throw;  // of all policies, those that have a plan are meant
    }
  }
  if (candidates.empty()) {
    throw InputError({.file = kCommandLine,
                      .field = "--policy",
                      .message = "no policy has a plan of this block",
                      .allowed = "a model, phase and sizes that explain shows plans of"});
  }
  out.trace = match_trace(out.list, candidates, progress);
  out.chosen = candidates.size() > 1;
  for (CandidatePlan& candidate : candidates)
    if (candidate.policy == out.trace.policy) out.plan = std::move(candidate);
  return out;
}

std::string traced_block_json(const TracedBlock& traced) {
  const MatchedTrace& t = traced.trace;
  const Workload& w = traced.selection.workload;
  ordered_json out = {{"schema", kTraceSchema},
                      {"model", traced.selection.model.name},
                      {"gpu", traced.selection.gpu.name},
                      {"phase", name_of(w.phase)},
                      {"batch", w.batch},
                      {"seq", w.seq},
                      {"context", w.context},
                      {"policy", t.policy},
                      {"policy_chosen", traced.chosen},
                      {"tool", traced.list.tool},
                      {"device", t.device},
                      {"repetitions", t.repetitions},
                      {"predicted_us", to_us(traced.plan.estimate.time)},
                      {"matched_us", to_us(t.matched())}};
  if (traced.list.in_place) {
    out["busy"] = spread_json(t.busy);
    out["span"] = spread_json(t.span);
    out["elsewhere_us"] = to_us(t.elsewhere);
    out["whole_us"] = to_us(t.whole);
  }
  ordered_json kernels = ordered_json::array();
  for (std::size_t k = 0; k < t.kernels.size(); ++k) {
    const KernelEstimate& estimate = traced.plan.estimate.kernels[k];
    ordered_json kernel = {{"name", estimate.name},
                           {"kind", name_of(estimate.kind)},
                           {"predicted_us", to_us(estimate.time)},
                           {"predicted_hbm_read_bytes", estimate.hbm_read.value()},
                           {"predicted_hbm_write_bytes", estimate.hbm_write.value()},
                           {"launches", t.kernels[k].launches}};
    if (t.kernels[k].launches > 0) {
      kernel.update(spread_json(t.kernels[k].time));
      put_counters(kernel, t.kernels[k].counters);
    }
    kernels.push_back(std::move(kernel));
  }
  out["kernels"] = std::move(kernels);
  ordered_json launches = ordered_json::array();
  for (const MatchedLaunch& l : t.launches) {
    ordered_json launch = {{"name", l.name}, {"grid", l.shape.grid}, {"block", l.shape.block}};
    launch.update(spread_json(l.time));
    put_counters(launch, l.counters);
    launch["kernel"] = l.kernel ? ordered_json(traced.plan.estimate.kernels[*l.kernel].name)
                                : ordered_json(nullptr);
    launch["matched_by"] = name_of(l.by);
    launches.push_back(std::move(launch));
  }
  out["launches"] = std::move(launches);
  ordered_json unmatched = ordered_json::array();
  for (const UnmatchedActivity& u : t.unmatched)
    unmatched.push_back({{"name", u.name},
                         {"launches", u.launches},
                         {"time_us", to_us(u.time)},
                         {"share", t.busy.median > Seconds(0) ? u.time / t.busy.median : 0.0}});
  out["unmatched"] = std::move(unmatched);
  if (!t.tensors.empty()) {
    ordered_json tensors = ordered_json::array();
    for (const TensorTraffic& tensor : t.tensors)
      tensors.push_back({{"tensor", tensor.tensor},
                         {"predicted_hbm_read_bytes", tensor.predicted_read.value()},
                         {"predicted_hbm_write_bytes", tensor.predicted_write.value()},
                         {"hbm_read_bytes", tensor.read.value()},
                         {"hbm_write_bytes", tensor.write.value()}});
    out["tensors"] = std::move(tensors);
  }
  out["notes"] = t.notes;
  out["doubt"] = traced.doubt();
  return json_text(out);
}

}  // namespace fuseline
