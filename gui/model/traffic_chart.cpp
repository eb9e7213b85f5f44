#include "gui/model/traffic_chart.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "gui/model/chart_colours.h"
#include "gui/model/geometry.h"
#include "gui/model/text.h"

namespace fuseline::gui {

namespace {

void add_part(TrafficBar& bar, BarPart part) {
  if (part.bytes == Bytes(0)) return;
  part.from = bar.total;
  bar.total += part.bytes;
  bar.parts.push_back(std::move(part));
}

void stack_kernels(TrafficBar& bar, const RunView& view) {
  std::map<KernelKind, int> shades;
  for (std::size_t i = 0; i < view.result->kernels.size(); ++i) {
    const KernelEstimate& k = view.result->kernels[i].estimate;
    const std::string& code = view.result->kernels[i].code;
    add_part(bar, {.label = k.name,
                   .bytes = k.hbm_read + k.hbm_write,
                   .tooltip = fmt::format("{} ({})\nread {}\nwritten {}{}{}", k.name,
                                          name_of(k.kind), exact_bytes(k.hbm_read),
                                          exact_bytes(k.hbm_write), code.empty() ? "" : "\n", code),
                   .colour = {role_of(k.kind), shades[k.kind]++},
                   .thing = kernel_thing(view.run.id, i)});
  }
}

void stack_tensors(TrafficBar& bar, const RunView& view) {
  const RunResult& r = *view.result;
  if (view.run.is_measurement() || !r.plan) {
    add_part(bar, {.label = "all tensors",
                   .bytes = r.totals.hbm(),
                   .tooltip = exact_bytes(r.totals.hbm()) +
                              "\ncounters do not tell which tensor was moved",
                   .colour = {ColourRole::measured, 0},
                   .thing = {}});
    return;
  }
  const Graph& graph = r.plan->graph;
  std::vector<Bytes> read(graph.tensors().size());
  Bytes known;
  for (const KernelRow& row : r.kernels) {
    for (const RequestedBytes& x : row.estimate.requested) {
      read[static_cast<std::size_t>(x.tensor.index)] += x.hbm_read;
      known += x.hbm_read;
    }
  }
  std::map<Role, int> shades;
  for (std::size_t i = 0; i < read.size(); ++i) {
    const Tensor& t = graph.tensors()[i];
    const int shade = shades[t.role]++;
    add_part(bar, {.label = t.name,
                   .bytes = read[i],
                   .tooltip = fmt::format("{} {} {}\nread {}", name_of(t.role), t.name, t.symbol,
                                          exact_bytes(read[i])),
                   .colour = {role_of(t.role), shade},
                   .thing = tensor_thing(t.name)});
  }
  const Bytes rest = r.totals.hbm_read - known;
  add_part(bar, {.label = "other reads",
                 .bytes = rest,
                 .tooltip = exact_bytes(rest) + " read that no tensor is charged with: partial "
                                                "sums of split GEMMs, or all at fidelity roofline",
                 .colour = {ColourRole::rest, 0},
                 .thing = {}});
  add_part(bar, {.label = "written",
                 .bytes = r.totals.hbm_write,
                 .tooltip = exact_bytes(r.totals.hbm_write) + " written back from L2",
                 .colour = {ColourRole::rest, 1},
                 .thing = {}});
}

TrafficBar bar_of(const Results& results, const RunView& view, StackBy by) {
  TrafficBar bar;
  bar.run = view.run.id;
  bar.label = view.run.name;
  bar.machine = view.machine;
  bar.policy = view.run.policy;
  bar.measured = view.run.is_measurement();
  bar.is_baseline = view.run.id == results.baseline;
  bar.about = subject_of(view);
  if (!view.ok()) {
    bar.note =
        view.result && view.result->problem ? view.result->problem->text : "not computed yet";
    return bar;
  }
  if (!view.result->totals.has_bytes) {
    bar.note = "only the time was measured: bytes need a kernel trace";
    return bar;
  }
  by == StackBy::kernel ? stack_kernels(bar, view) : stack_tensors(bar, view);
  const RunView* base = results.baseline_view();
  if (base != nullptr && base->result->totals.has_bytes && is_comparable(*base, view)) {
    bar.base = subject_of(*base);
    const ComparedTotals compared = comparable_totals(*base, view);
    bar.delta = delta_of(compared.base.hbm(), compared.other.hbm());
    bar.like_for_like = compared.like_for_like;
  }
  return bar;
}

Bytes limit_of(const Results& results) {
  const auto limit = [](const RunView& v) {
    return v.ok() && v.result->predicted ? v.result->predicted->limits.least : Bytes(0);
  };
  if (const RunView* base = results.baseline_view(); base != nullptr && limit(*base) > Bytes(0)) {
    return limit(*base);
  }
  for (const RunView& v : results.runs) {
    if (limit(v) > Bytes(0)) return limit(v);
  }
  return Bytes(0);
}

// One limit is drawn: runs of another block have another one.
std::string whose_limit(const Results& results) {
  const RunView* base = results.baseline_view();
  if (base == nullptr) return {};
  const bool others = std::ranges::any_of(results.runs, [&](const RunView& v) {
    return v.ok() && !same_work(*base->result, *v.result);
  });
  return others ? " for the baseline's block" : "";
}

}  // namespace

TrafficChart traffic_chart(const Results& results, StackBy by) {
  TrafficChart chart;
  Bytes most;
  for (const RunView& view : results.runs) {
    chart.bars.push_back(bar_of(results, view, by));
    most = std::max(most, chart.bars.back().total);
  }
  chart.limit = limit_of(results);
  if (chart.limit > Bytes(0)) {
    chart.limit_label = "at least " + short_bytes(chart.limit) + whose_limit(results);
    most = std::max(most, chart.limit);
  }
  chart.axis_high = nice_above(most.as_double() * 1.02);
  return chart;
}

Table to_table(const TrafficChart& chart) {
  Table table{"traffic",
              {"run", "policy", "measured", "part", "bytes", "total_bytes", "least_bytes",
               "relative_to_baseline"},
              {}};
  for (const TrafficBar& bar : chart.bars) {
    for (const BarPart& part : bar.parts) {
      add_row(table,
              {bar.label, bar.policy, std::string(bar.measured ? "yes" : "no"), part.label,
               part.bytes.value(), bar.total.value(), chart.limit.value(),
               bar.base ? Cell(bar.delta.relative) : Cell()},
              bar.about, bar.base ? &*bar.base : nullptr);
    }
  }
  return table;
}

}  // namespace fuseline::gui
