#include "sim/report/prediction_charts.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/format.h"
#include "sim/draw/bar_chart.h"
#include "sim/sure/estimate_bands.h"

namespace fuseline {

namespace {

constexpr double kMega = 1e6;

std::string chart_subject(const PredictionCase& c) {
  return fmt::format("{} on {}", c.model.name, c.gpu.title.empty() ? c.gpu.name : c.gpu.title);
}

}  // namespace

Svg draw_times(const PredictionCase& c, const std::vector<Prediction>& predictions) {
  BarChart chart{.title = "Time of one block: " + chart_subject(c),
                 .unit = "µs",
                 .parts = {"time"},
                 .bars = {}};
  const Sureness sure(c.gpu, c.workload);
  const PlanEstimate& base = baseline_of(predictions);
  for (const Prediction& p : predictions) {
    Bar bar{.label = p.block.policy, .parts = {to_us(p.block.time)}};
    if (const auto band = sure.time(p.block)) {
      bar.low = to_us(low_end(p.block.time, *band));
      bar.high = to_us(high_end(p.block.time, *band));
    }
    if (p.measured) bar.mark = to_us(p.measured->time.median);
    bar.note = in_microseconds(p.block.time) + " µs";
    if (base.policy != p.block.policy) bar.note += ", " + times(base.time / p.block.time);
    chart.bars.push_back(std::move(bar));
  }
  chart.limit = to_us(predictions.front().block.limits.time);
  chart.limit_name = "limit";
  return draw(chart);
}

Svg draw_traffic(const PredictionCase& c, const std::vector<Prediction>& predictions) {
  BarChart chart{.title = "HBM traffic of one block: " + chart_subject(c),
                 .unit = "MB",
                 .parts = {"read", "written"},
                 .bars = {}};
  const Sureness sure(c.gpu, c.workload);
  for (const Prediction& p : predictions) {
    const PlanEstimate& e = p.block;
    const Bytes all = e.hbm_read + e.hbm_write;
    Bar bar{.label = e.policy,
            .parts = {e.hbm_read.as_double() / kMega, e.hbm_write.as_double() / kMega}};
    if (const auto band = sure.hbm(e)) {
      bar.low = low_end(all, *band).as_double() / kMega;
      bar.high = high_end(all, *band).as_double() / kMega;
    }
    if (p.trace) bar.mark = (p.trace->hbm_read() + p.trace->hbm_write()).as_double() / kMega;
    bar.note = megabytes(all) + " MB";
    chart.bars.push_back(std::move(bar));
  }
  chart.limit = predictions.front().block.limits.compulsory.as_double() / kMega;
  chart.limit_name = "compulsory";
  return draw(chart);
}

Svg draw_timelines(const std::vector<Prediction>& predictions) {
  constexpr double kWidth = 820, kTop = 44, kRow = 34, kBar = 24, kRight = 8;
  constexpr Bound kBounds[] = {Bound::tensor, Bound::hbm,    Bound::l2,
                               Bound::smem,   Bound::launch, Bound::sync};
  double label_width = 40;
  Seconds most;
  std::string described;
  for (const Prediction& p : predictions) {
    label_width = std::max(label_width, text_width(p.block.policy));
    most = std::max(most, p.block.time);
    described += fmt::format("{}{}: {} kernels in {} µs", described.empty() ? "" : "; ",
                             p.block.policy, p.block.kernels.size(), in_microseconds(p.block.time));
  }
  const std::vector<double> ticks = axis_ticks(to_us(most));
  const double left = std::min(label_width, 190.0) + 18, right = kWidth - kRight;
  const double bottom = kTop + kRow * static_cast<double>(predictions.size());
  const auto x = [&](double us) { return left + (right - left) * us / ticks.back(); };
  Svg svg(kWidth, bottom + 42, "Kernels along the time", described);
  svg.text(0, 16, "Kernels along the time, coloured by what bounds them", Anchor::start, 14, 1,
           true);
  double at = kWidth;
  for (std::size_t b = std::size(kBounds); b-- > 0;) {
    const bool there = std::ranges::any_of(predictions, [&](const Prediction& p) {
      return std::ranges::any_of(p.block.kernels,
                                 [&](const KernelEstimate& k) { return k.bound == kBounds[b]; });
    });
    if (!there) continue;
    at -= text_width(name_of(kBounds[b]), 11);
    svg.text(at, 16, name_of(kBounds[b]), Anchor::start, 11);
    svg.rect(at - 16, 6, 11, 11, palette_colour(b));
    at -= 32;
  }
  for (const double tick : ticks) {
    svg.line(x(tick), kTop - 6, x(tick), bottom, 1, tick == 0 ? 0.6 : 0.15);
    svg.text(x(tick), bottom + 16, fmt::format("{:g}", tick),
             tick == ticks.back() ? Anchor::end : Anchor::middle, 11, 0.8);
  }
  svg.text((left + right) / 2, bottom + 34, "µs", Anchor::middle, 11, 0.8);
  for (std::size_t i = 0; i < predictions.size(); ++i) {
    const PlanEstimate& e = predictions[i].block;
    const double y = kTop + kRow * static_cast<double>(i);
    svg.text(left - 8, y + kBar / 2 + 4, shortened_to(e.policy, 190), Anchor::end);
    double begin = 0;
    for (const KernelEstimate& k : e.kernels) {
      const auto colour = static_cast<std::size_t>(
          std::find(std::begin(kBounds), std::end(kBounds), k.bound) - std::begin(kBounds));
      const double us = to_us(k.time), width = x(begin + us) - x(begin);
      // A gap of half a pixel tells neighbours of one colour apart.
      svg.rect(
          x(begin), y, width - (width > 2 ? 0.7 : 0), kBar, palette_colour(colour),
          fmt::format("{}: {} µs, bound by {}", k.name, in_microseconds(k.time), name_of(k.bound)));
      if (width > text_width(k.name, 10) + 6)
        svg.text_on(palette_colour(colour), x(begin) + width / 2, y + kBar / 2 + 3.5, k.name, 10);
      begin += us;
    }
  }
  return svg;
}

}  // namespace fuseline
