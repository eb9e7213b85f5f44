#include "gui/model/timeline_chart.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "gui/model/chart_colours.h"
#include "gui/model/text.h"
#include "model/operators/operator_table.h"

namespace fuseline::gui {

namespace {

// Of the block's time: below it kernels are said to add up.
constexpr double kNearlyAll = 0.002;

// What starts at one place in all rows: a GEMM or attention, by its main operator.
std::string anchor_of(const RunResult& r, std::size_t launch) {
  const KernelRow& row = r.kernels[launch];
  const bool first = launch == 0 || r.kernels[launch - 1].plan_kernel != row.plan_kernel;
  if (!row.plan_kernel || !first) return {};
  for (const OpId id : r.plan->kernels[*row.plan_kernel].ops) {
    const Op& op = r.plan->graph.op(id);
    if (is_contraction(op)) return op.name;
  }
  return {};
}

TimelineRow row_of(const RunView& view) {
  TimelineRow out;
  out.run = view.run.id;
  out.label = view.run.name;
  out.machine = view.machine;
  out.measured = view.run.is_measurement();
  out.about = subject_of(view);
  if (!view.ok()) {
    out.note =
        view.result && view.result->problem ? view.result->problem->text : "not computed yet";
    return out;
  }
  const RunResult& r = *view.result;
  out.total = r.totals.time;
  if (r.kernels.empty()) {
    out.note = "only the block's time was measured: " + short_time(r.totals.time);
    return out;
  }
  Seconds sum;
  for (std::size_t i = 0; i < r.kernels.size(); ++i) {
    const KernelRow& row = r.kernels[i];
    const KernelEstimate& k = row.estimate;
    TimelineBar bar;
    bar.kernel = i;
    bar.label = k.name;
    bar.begin = row.start;
    bar.length = k.time;
    bar.gap = std::min(k.launch_time, k.time);
    if (!row.measured) bar.bound = k.bound;
    bar.colour = row.measured ? Colour{role_of(k.kind), 0} : Colour{role_of(k.bound), 0};
    bar.tooltip = fmt::format("{} ({})\n{}, from {} on", k.name, name_of(k.kind),
                              short_time(k.time), short_time(row.start));
    if (bar.bound) {
      bar.tooltip += fmt::format("\nset by: {}\nlaunch and barriers: {}", name_of(k.bound),
                                 short_time(bar.gap));
    } else {
      bar.tooltip += "\n" + row.code;
    }
    bar.thing = kernel_thing(view.run.id, i);
    out.bars.push_back(std::move(bar));
    sum += k.time;
  }
  if (!out.measured) return out;
  out.unattributed = r.totals.time - sum;
  if (std::abs(out.unattributed / r.totals.time) < kNearlyAll) return out;
  const bool less = out.unattributed.value() > 0;
  out.sums_up = fmt::format(
      "{}: kernels timed one by one take {}, the block replayed as one graph {}{}", view.label(),
      short_time(sum), short_time(r.totals.time), less ? "; the rest lies between them" : "");
  return out;
}

// Anchors that all rows with bars have, in the order of the first row; the same order in all of
// them, others are left out.
std::vector<std::string> shared_anchors(const std::vector<std::vector<std::string>>& rows) {
  std::vector<std::string> shared;
  if (rows.empty()) return shared;
  std::vector<std::size_t> after(rows.size());
  for (const std::string& anchor : rows.front()) {
    if (anchor.empty()) continue;
    std::vector<std::size_t> place = after;
    bool in_all = true;
    for (std::size_t r = 0; r < rows.size() && in_all; ++r) {
      const auto begin = rows[r].begin() + static_cast<std::ptrdiff_t>(after[r]);
      const auto found = std::find(begin, rows[r].end(), anchor);
      in_all = found != rows[r].end();
      place[r] = static_cast<std::size_t>(found - rows[r].begin()) + 1;
    }
    if (!in_all) continue;
    shared.push_back(anchor);
    after = place;
  }
  return shared;
}

// Shifts bars to the right so that each shared anchor begins where it begins latest.
void align_by_work(TimelineChart& chart, const Results& results) {
  std::vector<TimelineRow*> rows;
  std::vector<std::vector<std::string>> anchors;
  for (TimelineRow& row : chart.rows) {
    const RunView& view = *results.find(row.run);
    if (row.bars.empty() || !view.result->plan) continue;
    rows.push_back(&row);
    anchors.emplace_back();
    for (std::size_t i = 0; i < row.bars.size(); ++i) {
      anchors.back().push_back(anchor_of(*view.result, i));
    }
  }
  std::vector<std::size_t> from(rows.size());
  for (const std::string& anchor : shared_anchors(anchors)) {
    Seconds latest;
    std::vector<std::size_t> at(rows.size());
    for (std::size_t r = 0; r < rows.size(); ++r) {
      while (anchors[r][from[r]] != anchor) ++from[r];
      at[r] = from[r]++;
      latest = std::max(latest, rows[r]->bars[at[r]].begin);
    }
    for (std::size_t r = 0; r < rows.size(); ++r) {
      const Seconds shift = latest - rows[r]->bars[at[r]].begin;
      for (std::size_t i = at[r]; i < rows[r]->bars.size(); ++i) rows[r]->bars[i].begin += shift;
    }
  }
}

}  // namespace

TimelineChart timeline_chart(const Results& results, Align align) {
  TimelineChart chart;
  chart.align = align;
  for (const RunView& view : results.runs) chart.rows.push_back(row_of(view));
  if (align == Align::work) align_by_work(chart, results);
  Seconds latest;
  for (const TimelineRow& row : chart.rows) {
    latest = std::max(latest, row.total);
    if (!row.bars.empty())
      latest = std::max(latest, row.bars.back().begin + row.bars.back().length);
  }
  chart.axis_high = microseconds(nice_above(to_us(latest) * 1.02));
  return chart;
}

Table to_table(const TimelineChart& chart) {
  Table table{"timeline", {"run", "order", "kernel", "begin_us", "time_us", "gap_us", "bound"}, {}};
  for (const TimelineRow& row : chart.rows) {
    for (const TimelineBar& bar : row.bars) {
      add_row(table,
              {row.label, static_cast<std::int64_t>(bar.kernel), bar.label, to_us(bar.begin),
               to_us(bar.length), bar.bound ? Cell(to_us(bar.gap)) : Cell(),
               bar.bound ? Cell(std::string(name_of(*bar.bound))) : Cell()},
              row.about);
    }
  }
  return table;
}

ResidencyChart residency_chart(const RunView& view, const std::string& tensor) {
  ResidencyChart chart;
  chart.run = view.run.id;
  chart.tensor = tensor;
  chart.about = subject_of(view);
  if (!view.ok() || !view.result->plan || !view.result->predicted) {
    chart.note = "nothing is simulated of " + view.run.name;
    return chart;
  }
  const RunResult& r = *view.result;
  const auto id = r.plan->graph.find_tensor(tensor);
  if (!id) {
    chart.note = view.run.name + " has no tensor " + tensor;
    return chart;
  }
  chart.bytes = r.plan->graph.tensor(*id).bytes();
  if (r.plan->homes[static_cast<std::size_t>(id->index)] == Home::on_chip) {
    chart.note = tensor + " never leaves the chip";
    return chart;
  }
  if (r.predicted->fidelity == Fidelity::roofline) {
    chart.note = "fidelity roofline has no L2: choose hierarchy";
    return chart;
  }
  const std::vector<ResidentBytes> resident = residence_over_time(
      *r.plan, r.block->gpu, *id, {.replay = view.run.is_measurement(), .runs = 2});
  Seconds now;
  for (std::size_t i = 0; i < resident.size() && i < r.predicted->kernels.size(); ++i) {
    const Seconds end = now + r.predicted->kernels[i].time;
    const double fraction = resident[i].bytes.as_double() / chart.bytes.as_double();
    chart.steps.push_back(
        {.begin = now,
         .end = end,
         .resident = resident[i].bytes,
         .fraction = fraction,
         .alive = resident[i].alive,
         .tooltip = fmt::format("after {}: {} of {} in L2 ({:.0f} %)", resident[i].launch,
                                exact_bytes(resident[i].bytes), tensor, 100 * fraction)});
    now = end;
  }
  return chart;
}

Table to_table(const ResidencyChart& chart) {
  Table table{"residency", {"tensor", "begin_us", "end_us", "resident_bytes", "alive"}, {}};
  for (const ResidencyStep& s : chart.steps) {
    add_row(table,
            {chart.tensor, to_us(s.begin), to_us(s.end), s.resident.value(),
             std::string(s.alive ? "yes" : "no")},
            chart.about);
  }
  return table;
}

}  // namespace fuseline::gui
