#include "gui/model/sweep.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <stop_token>

#include "base/error.h"
#include "base/format.h"
#include "base/parallel_for.h"
#include "gui/model/run_plan.h"
#include "gui/model/text.h"
#include "sim/gpu/plan_target.h"

namespace fuseline::gui {

namespace {

PredictionCase case_at(PredictionCase c, SweepAxis axis, std::int64_t value) {
  switch (axis) {
    case SweepAxis::tokens:
      c.workload.seq = value;
      break;
    case SweepAxis::context:
      c.workload.context = value;
      break;
    case SweepAxis::batch:
      c.workload.batch = value;
      break;
    case SweepAxis::width:
      c.model = with_width(c.model, value);
      break;
  }
  check_workload(c.workload, c.model);
  return c;
}

SweepPoint point_at(const PredictionCase& base, SweepAxis axis, std::int64_t value,
                    const Run& run) {
  SweepPoint p;
  p.value = value;
  p.about = subject_of(base, run.policy, name_of(base.fidelity));
  try {
    const PredictionCase c = case_at(base, axis, value);
    p.about = subject_of(c, run.policy, name_of(c.fidelity));
    const PlanEstimate e = simulate(plan_of(run, c), c.gpu, c.fidelity);
    p.time = e.time;
    p.hbm = e.hbm_read + e.hbm_write;
    p.tooltip = fmt::format("{} at {} = {}\n{}\n{}", run.name, name_of(axis), grouped(value),
                            short_time(p.time), exact_bytes(p.hbm));
  } catch (const InputError& error) {
    p.problem = error.what();
    p.tooltip = p.problem;
  }
  return p;
}

// Where the lines through (x0, a0), (x1, a1) and (x0, b0), (x1, b1) meet, all logarithms.
double meeting(double x0, double x1, double a0, double a1, double b0, double b1) {
  return x0 + (x1 - x0) * (b0 - a0) / ((a1 - a0) - (b1 - b0));
}

Range decades(double low, double high) {
  if (!(high > 0)) return {1, 10};
  Range r{std::pow(10.0, std::floor(std::log10(low))), std::pow(10.0, std::ceil(std::log10(high)))};
  if (r.low == r.high) r.high *= 10;
  return r;
}

void set_axes(SweepChart& chart, const SweepRequest& request) {
  chart.axis = request.axis;
  static constexpr const char* kLabels[] = {"tokens per sequence T", "context S", "sequences B",
                                            "width D"};
  chart.x_label = kLabels[static_cast<int>(request.axis)];
  chart.title = fmt::format("Over {}", chart.x_label);
  chart.x = {static_cast<double>(request.values.front()),
             static_cast<double>(request.values.back())};
  double least_time = 1e300, most_time = 0, least_bytes = 1e300, most_bytes = 0;
  for (const SweepCurve& curve : chart.curves) {
    for (const SweepPoint& p : curve.points) {
      if (!p.problem.empty()) continue;
      least_time = std::min(least_time, to_us(p.time));
      most_time = std::max(most_time, to_us(p.time));
      least_bytes = std::min(least_bytes, p.hbm.as_double());
      most_bytes = std::max(most_bytes, p.hbm.as_double());
    }
  }
  chart.time_us = decades(least_time, most_time);
  chart.hbm_bytes = decades(least_bytes, most_bytes);
}

// A width is a number of heads. InputError: the model has none, as a block of scans.
std::int64_t width_of_heads(const ModelConfig& model) {
  if (model.d < 1 || model.H < 1 || model.Hkv < 1)
    throw InputError({.field = "D",
                      .value = model.name,
                      .message = "has no attention heads, whose number a sweep of widths changes",
                      .allowed = "a sweep of T, B, or in decode S"});
  return model.d;
}

}  // namespace

const char* name_of(SweepAxis axis) {
  switch (axis) {
    case SweepAxis::tokens:
      return "T";
    case SweepAxis::context:
      return "S";
    case SweepAxis::batch:
      return "B";
    case SweepAxis::width:
      return "D";
  }
  FUSELINE_ASSERT(false, "axis");
}

ModelConfig with_width(const ModelConfig& model, std::int64_t D) {
  const std::int64_t d = width_of_heads(model);
  if (D < d || D % d != 0) {
    throw InputError({.field = "D",
                      .value = std::to_string(D),
                      .message = "is no multiple of the head width",
                      .allowed = fmt::format("multiples of {}", d)});
  }
  ModelConfig out = model;
  out.D = D;
  out.H = D / d;
  // Keys and values keep their share of the heads where that divides them.
  const std::int64_t share = std::max<std::int64_t>(1, model.H / model.Hkv);
  out.Hkv = out.H % share == 0 ? out.H / share : out.H;
  const double F =
      static_cast<double>(model.F) / static_cast<double>(model.D) * static_cast<double>(D);
  out.F = std::max<std::int64_t>(64, std::llround(F / 64) * 64);
  out.name = fmt::format("{} with D = {}", model.name, D);
  out.title = fmt::format("{} with D = {}", model.title.empty() ? model.name : model.title, D);
  check_config(out, "");
  return out;
}

std::vector<std::int64_t> default_values(const Setup& setup, SweepAxis axis) {
  const PredictionCase c = resolve(setup);
  const bool decode = c.workload.phase == Phase::decode;
  std::vector<std::int64_t> values;
  const auto doubling = [&](std::int64_t from, std::int64_t to) {
    for (std::int64_t v = from; v <= to; v *= 2) values.push_back(v);
  };
  switch (axis) {
    case SweepAxis::tokens:
      decode ? doubling(1, std::min<std::int64_t>(64, c.workload.context)) : doubling(128, 8192);
      break;
    case SweepAxis::context:
      doubling(std::max<std::int64_t>(256, c.workload.seq), 32768);
      break;
    case SweepAxis::batch:
      decode ? doubling(1, 256) : doubling(1, 16);
      break;
    case SweepAxis::width: {
      const std::int64_t d = width_of_heads(c.model);
      for (std::int64_t heads = 8; heads <= 64; heads += 8) values.push_back(heads * d);
      break;
    }
  }
  return values;
}

std::vector<std::int64_t> values_between(const Setup& setup, SweepAxis axis, std::int64_t from,
                                         std::int64_t to) {
  const PredictionCase c = resolve(setup);
  if (from < 1 || to <= from)
    throw InputError({.field = name_of(axis),
                      .value = fmt::format("{} to {}", from, to),
                      .message = "is no range",
                      .allowed = "two sizes, the smaller one first"});
  std::vector<std::int64_t> values;
  if (axis == SweepAxis::width) {
    const std::int64_t d = width_of_heads(c.model), first = (from + d - 1) / d, last = to / d;
    const auto most = static_cast<std::int64_t>(kMostSweepValues);
    const std::int64_t step = std::max<std::int64_t>(1, (last - first + most - 1) / most);
    for (std::int64_t heads = first; heads <= last; heads += step) values.push_back(heads * d);
    if (values.empty())
      throw InputError({.field = "D",
                        .value = fmt::format("{} to {}", from, to),
                        .message = "holds no whole number of heads",
                        .allowed = fmt::format("multiples of {}", d)});
    return values;
  }
  for (std::int64_t v = from; v < to; v *= 2) values.push_back(v);
  values.push_back(to);
  // A wide range: every other one, and the ends.
  while (values.size() > kMostSweepValues) {
    std::vector<std::int64_t> fewer;
    for (std::size_t i = 0; i + 1 < values.size(); i += 2) fewer.push_back(values[i]);
    fewer.push_back(values.back());
    values = std::move(fewer);
  }
  return values;
}

std::vector<Crossover> crossovers(const std::vector<SweepCurve>& curves, const char* axis) {
  std::vector<Crossover> found;
  for (std::size_t a = 0; a < curves.size(); ++a) {
    for (std::size_t b = a + 1; b < curves.size(); ++b) {
      // The last value at which one was faster; values at which both take equally long, or one has
      // no number, are passed over.
      std::optional<std::size_t> last;
      for (std::size_t i = 0; i < curves[a].points.size(); ++i) {
        const SweepPoint &p = curves[a].points[i], &q = curves[b].points[i];
        if (!p.problem.empty() || !q.problem.empty()) {
          last.reset();
          continue;
        }
        if (p.time == q.time) continue;
        if (last) {
          const SweepPoint &p0 = curves[a].points[*last], &q0 = curves[b].points[*last];
          if ((p0.time < q0.time) != (p.time < q.time)) {
            const auto ln = [](Seconds t) { return std::log(t.value()); };
            const double x0 = std::log(static_cast<double>(p0.value));
            const double x1 = std::log(static_cast<double>(p.value));
            const double x = meeting(x0, x1, ln(p0.time), ln(p.time), ln(q0.time), ln(q.time));
            const double t = ln(p0.time) + (ln(p.time) - ln(p0.time)) * (x - x0) / (x1 - x0);
            Crossover c{.before = p0.time < q0.time ? a : b,
                        .after = p.time < q.time ? a : b,
                        .at = std::exp(x),
                        .time = Seconds(std::exp(t)),
                        .text = {}};
            c.text = fmt::format("{} is faster than {} from {} ≈ {}", curves[c.after].label,
                                 curves[c.before].label, axis, grouped(std::llround(c.at)));
            found.push_back(std::move(c));
          }
        }
        last = i;
      }
    }
  }
  std::ranges::stable_sort(found, {}, &Crossover::at);
  return found;
}

SweepChart sweep(const SweepRequest& request, const std::stop_token& stop,
                 const Progress& progress) {
  FUSELINE_ASSERT(!request.values.empty() && !request.runs.empty(), "a sweep of nothing");
  const PredictionCase base = resolve(request.setup);
  SweepChart chart;
  for (std::size_t r = 0; r < request.runs.size(); ++r) {
    chart.curves.push_back({request.runs[r].name, {ColourRole::run, static_cast<int>(r)}, {}});
    chart.curves.back().points.resize(request.values.size());
  }
  const std::size_t total = request.values.size() * request.runs.size();
  std::atomic<bool> stopped = stop.stop_requested();
  const std::stop_callback on_stop(stop, [&] { stopped = true; });
  parallel_for(total,
               [&](std::size_t i) {
                 const std::size_t r = i % request.runs.size(), v = i / request.runs.size();
                 chart.curves[r].points[v] =
                     point_at(base, request.axis, request.values[v], request.runs[r]);
               },
               {.stop = &stopped, .progress = progress});
  throw_if_stopped(stop);
  set_axes(chart, request);
  chart.crossovers = crossovers(chart.curves, name_of(request.axis));
  return chart;
}

Table to_table(const SweepChart& chart) {
  Table table{"sweep", {"run", name_of(chart.axis), "time_us", "hbm_bytes", "problem"}, {}};
  for (const SweepCurve& curve : chart.curves) {
    for (const SweepPoint& p : curve.points) {
      const bool ok = p.problem.empty();
      add_row(table,
              {curve.label, p.value, ok ? Cell(to_us(p.time)) : Cell(),
               ok ? Cell(p.hbm.value()) : Cell(), ok ? Cell() : Cell(p.problem)},
              p.about);
    }
  }
  return table;
}

}  // namespace fuseline::gui
