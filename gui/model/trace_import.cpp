#include "gui/model/trace_import.h"

#include <fmt/format.h>

#include <algorithm>
#include <system_error>

#include "base/error.h"
#include "gui/model/live_measure.h"
#include "gui/model/text.h"
#include "model/policy.h"
#include "sim/measured/measurement_write.h"
#include "sim/traces/hand_match.h"

namespace fuseline::gui {

namespace {

constexpr std::size_t kTraceSteps = 1000;

std::string error_text(Seconds predicted, Seconds measured) {
  return signed_percent_text(predicted / measured - 1);
}

// A GPU's description says its vendor's name and more: "NVIDIA H200 SXM 141 GB".
bool may_be_same_device(const std::string& recorded, const std::string& title) {
  return recorded.empty() || lower_case(title).find(lower_case(recorded)) != std::string::npos;
}

}  // namespace

std::shared_ptr<const TracedBlock> import_trace(const TraceRequest& request,
                                                const std::stop_token& stop,
                                                const Progress& progress) {
  fuseline::Selection selection;
  static_cast<PredictionCase&>(selection) = resolve(request.setup);
  if (!request.policy.empty()) {
    selection.policies = {request.policy};
  } else {
    for (const PolicyInfo& p : policies())
      if (request.setup.workload.phase != Phase::train || p.trains)
        selection.policies.push_back(p.name);
  }
  return std::make_shared<const TracedBlock>(match_traced_block(
      request.file, std::move(selection), !request.policy.empty(),
      [&](const std::string&, double done) {
        throw_if_stopped(stop);
        if (progress)
          progress(static_cast<std::size_t>(done * static_cast<double>(kTraceSteps)), kTraceSteps);
      }));
}

TraceChart trace_chart(const TracedBlock& traced, const Setup& setup) {
  const MatchedTrace& t = traced.trace;
  TraceChart chart;
  chart.about =
      subject_of(traced.selection, traced.plan.policy, name_of(traced.selection.fidelity));
  chart.measured = chart.about;
  chart.measured.source = kMeasuredSource;
  const auto by_hand = std::ranges::count(t.launches, MatchedBy::hand, &MatchedLaunch::by);
  if (by_hand > 0)
    chart.notes.push_back(
        fmt::format("{} launch{} matched by hand", by_hand, by_hand == 1 ? " was" : "es were"));
  chart.doubt = traced.doubt();
  const char* const fits = !chart.doubt.empty() ? " does not fit"
                           : traced.chosen      ? " matches best"
                                                : "";
  chart.title =
      fmt::format("{}{}: {} launches a block, {} block{} in {} of {}", t.policy, fits,
                  t.launches.size(), t.repetitions, t.repetitions == 1 ? "" : "s",
                  std::filesystem::path(traced.list.path).filename().string(), traced.list.tool);
  Seconds predicted;
  for (std::size_t k = 0; k < t.kernels.size(); ++k) {
    const KernelEstimate& e = traced.plan.estimate.kernels[k];
    const MatchedPlanKernel& m = t.kernels[k];
    TraceRow row{.kernel = e.name,
                 .kind = e.kind,
                 .predicted = e.time,
                 .measured = {},
                 .launches = m.launches,
                 .by = {},
                 .names = {},
                 .predicted_hbm = e.hbm_read + e.hbm_write,
                 .measured_hbm = {}};
    if (m.launches > 0) row.measured = m.time;
    if (m.counters) row.measured_hbm = m.counters->hbm_read + m.counters->hbm_write;
    for (const MatchedLaunch& l : t.launches) {
      if (l.kernel != k) continue;
      row.names.push_back(l.name);
      if (row.by.empty() && l.by != MatchedBy::part) row.by = name_of(l.by);
    }
    predicted += e.time;
    chart.rows.push_back(std::move(row));
  }
  const Seconds block = traced.list.in_place ? t.busy.median : t.matched();
  if (block > Seconds()) {
    const std::string error =
        chart.doubt.empty() ? ": " + error_text(predicted, block) : std::string();
    chart.judged_short =
        fmt::format("predicted {}, measured {}{}", short_time(predicted), short_time(block), error);
    chart.judged = fmt::format(
        "predicted {}, measured {}{}{}", short_time(predicted), short_time(block),
        traced.list.in_place ? " with a kernel running" : ", the sum of its kernels", error);
  }
  for (const MatchedLaunch& l : t.launches)
    chart.launches.push_back(
        {l.name, l.time.median, l.kernel, l.kernel ? name_of(l.by) : std::string()});
  for (const UnmatchedActivity& u : t.unmatched)
    chart.rest.push_back({u.name, u.launches, u.time, block > Seconds() ? u.time / block : 0});
  chart.notes.insert(chart.notes.end(), t.notes.begin(), t.notes.end());
  const std::string title = resolve(setup).gpu.title;
  if (!may_be_same_device(t.device, title))
    chart.notes.push_back(fmt::format(
        "recorded on {}, and the session is about {}: the errors are those of another GPU",
        t.device, title));
  return chart;
}

std::vector<Table> to_tables(const TraceChart& chart) {
  Table kernels;
  kernels.name = "trace";
  kernels.columns = {"kernel",   "kind",       "predicted_us",        "measured_us",       "error",
                     "launches", "matched_by", "predicted_hbm_bytes", "measured_hbm_bytes"};
  for (const TraceRow& r : chart.rows) {
    const bool there = r.measured && r.measured->median > Seconds();
    add_row(kernels,
            {r.kernel, std::string(name_of(r.kind)), to_us(r.predicted),
             there ? Cell(to_us(r.measured->median)) : Cell(),
             there && chart.doubt.empty() ? Cell(r.predicted / r.measured->median - 1) : Cell(),
             static_cast<std::int64_t>(r.launches), r.by, r.predicted_hbm.value(),
             r.measured_hbm ? Cell(r.measured_hbm->value()) : Cell()},
            chart.about, there ? &chart.measured : nullptr);
  }
  Table rest;
  rest.name = "trace-unmatched";
  rest.columns = {"name", "launches", "measured_us", "share"};
  for (const TraceRest& r : chart.rest)
    add_row(rest, {r.name, static_cast<std::int64_t>(r.launches), to_us(r.time), r.share},
            chart.measured);
  return {std::move(kernels), std::move(rest)};
}

std::shared_ptr<const TracedBlock> match_by_hand(const TracedBlock& traced,
                                                 const std::vector<std::size_t>& launches,
                                                 std::optional<std::size_t> kernel) {
  auto matched = std::make_shared<TracedBlock>(traced);
  matched->trace = matched_by_hand(traced.trace, launches, kernel, traced.plan);
  return matched;
}

std::filesystem::path keep_trace(const TracedBlock& traced, const std::filesystem::path& under) {
  std::error_code error;
  std::filesystem::create_directories(under, error);
  if (error)
    throw InputError({.file = under.string(), .message = "cannot be made: " + error.message()});
  const BlockCase block = traced.block();
  const auto folder = fresh_folder(
      under,
      fmt::format("{}-{}-{}-traced", block.model, name_of(block.workload.phase), block.execution));
  write_measurements(folder, traced.measurements());
  return folder;
}

}  // namespace fuseline::gui
