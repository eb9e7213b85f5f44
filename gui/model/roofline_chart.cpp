#include "gui/model/roofline_chart.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "gui/model/chart_colours.h"
#include "gui/model/run_machine.h"
#include "gui/model/text.h"
#include "model/operators/operator_table.h"
#include "sim/block/limits.h"

namespace fuseline::gui {

namespace {

// Decades of intensity shown left and right of the decade of the HBM ridge.
constexpr int kDecadesBelowRidge = 4;
constexpr int kDecadesAboveRidge = 2;
constexpr double kAboveRoof = 1.5;

double whole_decade_below(double v) { return std::pow(10.0, std::floor(std::log10(v) + 1e-9)); }
double whole_decade_above(double v) { return std::pow(10.0, std::ceil(std::log10(v) - 1e-9)); }

// What the roofs of one machine follow from.
struct Machine {
  std::string name, title;
  std::string dtype;
  FlopsPerSecond peak, vector;
  BytesPerSecond hbm, hbm_sustained, l2;
  friend bool operator==(const Machine&, const Machine&) = default;
};

Machine machine_of(const Results& results, const PredictionCase& c) {
  const Gpu& gpu = c.gpu;
  return {.name = name_of_gpu(results, gpu),
          .title = gpu.title,
          .dtype = name_of(c.workload.dtype),
          .peak = tensor_peak(gpu, c.workload.dtype),
          .vector = gpu.vector_fp32,
          .hbm = gpu.hbm_bandwidth,
          .hbm_sustained = gpu.hbm_bandwidth_sustained,
          .l2 = gpu.l2_bandwidth};
}

// Each machine once, the baseline's first.
std::vector<Machine> machines_of(const Results& results) {
  std::vector<Machine> machines;
  const auto add = [&](const RunView& view) {
    const Machine m = machine_of(results, *view.result->block);
    if (std::ranges::find(machines, m) == machines.end()) machines.push_back(m);
  };
  if (const RunView* base = results.baseline_view()) add(*base);
  for (const RunView& v : results.runs) {
    if (v.ok()) add(v);
  }
  return machines;
}

void widen(Range& range, const Range& by) {
  range = {std::min(range.low, by.low), std::max(range.high, by.high)};
}

// The same whatever is drawn.
void set_axes(RooflineChart& chart, const std::vector<Machine>& machines) {
  for (const Machine& m : machines) {
    const double ridge = m.peak.value() / m.hbm.value();
    const Range x{whole_decade_below(ridge) * std::pow(10.0, -kDecadesBelowRidge),
                  whole_decade_above(ridge) * std::pow(10.0, kDecadesAboveRidge)};
    // Room above the roof: points and names stand there.
    const Range y{whole_decade_below(m.hbm.value() * x.low),
                  nice_above(kAboveRoof * m.peak.value())};
    if (&m == &machines.front()) {
      chart.x = x;
      chart.y = y;
    }
    widen(chart.x, x);
    widen(chart.y, y);
  }
}

// `place`: of the machine among those that are drawn.
void add_ceilings(RooflineChart& chart, const Machine& m, int place, bool named) {
  const std::string of = named ? m.name + ": " : "";
  const auto add = [&](Ceiling c) {
    c.machine = m.name;
    c.colour = {c.sustained ? ColourRole::muted : ColourRole::ceiling, place};
    chart.ceilings.push_back(std::move(c));
  };
  const auto roof = [&](BytesPerSecond rate, const std::string& name, bool sustained) {
    const double ridge_here = m.peak.value() / rate.value();
    const double left = std::max(chart.x.low, chart.y.low / rate.value());
    add({.label = of + name + " " + short_rate(rate),
         .from = {left, left * rate.value()},
         .to = {ridge_here, m.peak.value()},
         .tooltip = fmt::format("{}{}: {}\nridge at {:.1f} FLOP per byte", of, name,
                                short_rate(rate), ridge_here),
         .sustained = sustained});
  };
  const BytesPerSecond level = chart.level == MemoryLevel::hbm ? m.hbm : m.l2;
  roof(level, chart.level == MemoryLevel::hbm ? "HBM" : "L2", false);
  if (chart.level == MemoryLevel::hbm) roof(m.hbm_sustained, "HBM sustained", true);
  const auto flat = [&](FlopsPerSecond rate, const std::string& name) {
    add({.label = of + name + " " + short_rate(rate),
         .from = {rate.value() / level.value(), rate.value()},
         .to = {chart.x.high, rate.value()},
         .tooltip = of + name + ": " + short_rate(rate),
         .sustained = false});
  };
  flat(m.peak, "tensor " + m.dtype);
  if (m.vector.value() > 0) flat(m.vector, "vector fp32");
}

// "H200 and H100 SXM"; the same GPU with two data types once.
std::string titles_of(const std::vector<Machine>& machines) {
  std::vector<std::string> titles;
  for (const Machine& m : machines) {
    if (std::ranges::find(titles, m.title) == titles.end()) titles.push_back(m.title);
  }
  return fmt::format("{}", fmt::join(titles, " and "));
}

bool is_inside(const RooflineChart& chart, Point p) {
  return p.x >= chart.x.low && p.x <= chart.x.high && p.y >= chart.y.low && p.y <= chart.y.high;
}

class PointMaker {
 public:
  PointMaker(RooflineChart& chart, const Results& results) : chart_(chart), results_(results) {}

  void add_run(const RunView& view) {
    const RunResult& r = *view.result;
    for (std::size_t i = 0; i < r.kernels.size(); ++i) {
      const KernelEstimate& k = r.kernels[i].estimate;
      RooflinePoint p;
      p.kernel = i;
      p.label = k.name;
      p.colour = {role_of(k.kind), 0};
      p.thing = kernel_thing(view.run.id, i);
      add(view, std::move(p), k.flops, bytes(k.hbm_read + k.hbm_write, k.l2), k.time);
    }
    RooflinePoint whole;
    whole.is_block = true;
    whole.kernel = r.kernels.size();
    whole.label = view.label();
    whole.colour = colour_of_run(results_, view.run.id);
    whole.thing = run_thing(view.run.id);
    if (r.totals.has_bytes) {
      add(view, std::move(whole), r.totals.flops, bytes(r.totals.hbm(), r.totals.l2),
          r.totals.time);
    }
  }

 private:
  [[nodiscard]] Bytes bytes(Bytes hbm, Bytes l2) const {
    return chart_.level == MemoryLevel::hbm ? hbm : l2;
  }

  void add(const RunView& view, RooflinePoint p, Flops flops, Bytes moved, Seconds time) {
    p.run = view.run.id;
    p.measured = view.run.is_measurement();
    const double part = time / view.result->totals.time;
    p.size = p.is_block ? 1 : std::min(1.0, part);
    p.tooltip = fmt::format("{}{}\n{}, {:.1f} % of the block\n{}\n{}", p.label,
                            p.is_block ? "" : " of " + view.label(), short_time(time), 100 * part,
                            exact_flops(flops), exact_bytes(moved));
    if (flops == Flops(0) || moved == Bytes(0) || !(time.value() > 0)) {
      chart_.outside.push_back(std::move(p));
      return;
    }
    p.at = {flops.as_double() / moved.as_double(), flops.as_double() / time.value()};
    p.tooltip += fmt::format("\n{:.3g} FLOP per byte of {}, {}", p.at.x, name_of(chart_.level),
                             short_rate(FlopsPerSecond(p.at.y)));
    (is_inside(chart_, p.at) ? chart_.points : chart_.outside).push_back(std::move(p));
  }

  RooflineChart& chart_;
  const Results& results_;
};

// The launch's operator with a mainloop: what tells that two kernels do the same work.
std::string main_operator(const RunView& view, const RooflinePoint& p) {
  const RunResult& r = *view.result;
  const auto& kernel = r.kernels[p.kernel].plan_kernel;
  const KernelEstimate& e = r.kernels[p.kernel].estimate;
  const bool first = p.kernel == 0 || r.kernels[p.kernel - 1].plan_kernel != kernel;
  if (!kernel || !first || (e.kind != KernelKind::gemm && e.kind != KernelKind::attention))
    return {};
  for (const OpId id : r.plan->kernels[*kernel].ops) {
    const Op& op = r.plan->graph.op(id);
    if (is_contraction(op)) return op.name;
  }
  return {};
}

void add_arrows(RooflineChart& chart, const Results& results) {
  const RunView* base = results.baseline_view();
  if (base == nullptr) return;
  for (const RooflinePoint& p : chart.points) {
    if (p.run == results.baseline) continue;
    const RunView& view = *results.find(p.run);
    if (!is_comparable(*base, view)) {
      if (p.is_block) chart.not_compared.push_back(view.label());
      continue;
    }
    const std::string wanted = p.is_block ? "" : main_operator(view, p);
    if (!p.is_block && wanted.empty()) continue;
    for (const RooflinePoint& b : chart.points) {
      if (b.run != results.baseline || b.is_block != p.is_block) continue;
      if (!p.is_block && main_operator(*base, b) != wanted) continue;
      const double ratio = p.is_block ? base->result->totals.time / view.result->totals.time
                                      : base->result->kernels[b.kernel].estimate.time /
                                            view.result->kernels[p.kernel].estimate.time;
      chart.arrows.push_back({.run = p.run,
                              .from = b.at,
                              .to = p.at,
                              .ratio = ratio,
                              .label = speed_text(ratio),
                              .is_block = p.is_block});
      break;
    }
  }
}

}  // namespace

RooflineChart roofline_chart(const Results& results, MemoryLevel level) {
  FUSELINE_ASSERT(level == MemoryLevel::hbm || level == MemoryLevel::l2, name_of(level));
  RooflineChart chart;
  chart.level = level;
  const std::vector<Machine> machines = machines_of(results);
  if (machines.empty()) return chart;
  chart.title = fmt::format("Roofline of {}, {}", titles_of(machines), name_of(level));
  chart.x_label = fmt::format("FLOP per byte of {}", name_of(level));
  set_axes(chart, machines);
  for (std::size_t i = 0; i < machines.size(); ++i) {
    add_ceilings(chart, machines[i], static_cast<int>(i), machines.size() > 1);
  }
  PointMaker maker(chart, results);
  for (const RunView& view : results.runs) {
    if (view.ok()) maker.add_run(view);
  }
  add_arrows(chart, results);
  return chart;
}

Table to_table(const RooflineChart& chart, const Results& results) {
  Table table{
      chart.level == MemoryLevel::hbm ? "roofline-hbm" : "roofline-l2",
      {"run", "gpu", "kernel", "measured", "flop_per_byte", "flop_per_s", "part_of_time", "drawn"},
      {}};
  const auto add = [&](const RooflinePoint& p, bool drawn) {
    const bool has_place = p.at.y > 0;
    const RunView& view = *results.find(p.run);
    add_row(table,
            {view.run.name, view.result->block->gpu.name, p.is_block ? "(block)" : p.label,
             std::string(p.measured ? "yes" : "no"), has_place ? Cell(p.at.x) : Cell(),
             has_place ? Cell(p.at.y) : Cell(0.0), p.size, std::string(drawn ? "yes" : "no")},
            subject_of(view));
  };
  for (const RooflinePoint& p : chart.points) add(p, true);
  for (const RooflinePoint& p : chart.outside) add(p, false);
  return table;
}

}  // namespace fuseline::gui
