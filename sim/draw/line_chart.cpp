#include "sim/draw/line_chart.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include <fmt/format.h>

namespace fuseline {

namespace {

constexpr double kLinesWidth = 820, kLinesHeight = 440, kLinesLeft = 76, kLinesTop = 36,
                 kLinesBottom = 390;
constexpr double kLegend = 190, kLegendRow = 18;
constexpr double kLogarithmic = 8;  // from here on values are easier to tell apart by their ratios

// One axis: where a value lies between 0 and 1, and the values that are written beside it.
class ChartAxis {
 public:
  ChartAxis(double least, double most) : logarithmic_(least > 0 && most / least > kLogarithmic) {
    if (logarithmic_) {
      low_ = std::log10(least);
      high_ = std::log10(most);
      const double room = (high_ - low_) * 0.04;
      low_ -= room;
      high_ += room;
      const bool few = high_ - low_ > 2.5;
      for (double power = std::floor(low_); power <= high_; power += 1) {
        for (const double factor : {1.0, 2.0, 5.0}) {
          const double at = power + std::log10(factor);
          if (at >= low_ && at <= high_ && (!few || factor == 1))
            ticks_.push_back(std::pow(10, at));
        }
      }
    } else {
      ticks_ = axis_ticks(most);
      high_ = ticks_.back();
    }
  }

  [[nodiscard]] double share(double value) const {
    const double at = logarithmic_ ? std::log10(std::max(value, 1e-300)) : value;
    return high_ > low_ ? (at - low_) / (high_ - low_) : 0.5;
  }
  [[nodiscard]] const std::vector<double>& ticks() const { return ticks_; }
  void set_ticks(std::vector<double> ticks) { ticks_ = std::move(ticks); }

 private:
  bool logarithmic_;
  double low_ = 0, high_ = 1;
  std::vector<double> ticks_;
};

std::string lines_in_words(const LineChart& chart) {
  std::string text = chart.y_name + " over " + chart.x_name;
  for (const ChartLine& line : chart.lines) {
    if (line.points.empty()) continue;
    text += fmt::format("; {}: {} at {}, {} at {}", line.name, chart_number(line.points.front().y),
                        chart_number(line.points.front().x), chart_number(line.points.back().y),
                        chart_number(line.points.back().x));
  }
  return text;
}

}  // namespace

Svg draw(const LineChart& chart) {
  double least_x = std::numeric_limits<double>::max(), most_x = 0, least_y = least_x, most_y = 0;
  std::set<double> sizes;
  for (const ChartLine& line : chart.lines) {
    for (const ChartPoint& p : line.points) {
      least_x = std::min(least_x, p.x);
      most_x = std::max(most_x, p.x);
      least_y = std::min(least_y, p.low.value_or(p.y));
      most_y = std::max(most_y, p.high.value_or(p.y));
      sizes.insert(p.x);
    }
  }
  ChartAxis horizontal(least_x, most_x);
  if (sizes.size() <= 10) horizontal.set_ticks({sizes.begin(), sizes.end()});
  const ChartAxis vertical(least_y, most_y);
  const double right = kLinesWidth - kLegend;
  const auto x = [&](double value) {
    return kLinesLeft + (right - kLinesLeft) * horizontal.share(value);
  };
  const auto y = [&](double value) {
    return kLinesBottom - (kLinesBottom - kLinesTop) * vertical.share(value);
  };
  const double height =
      std::max(kLinesHeight, kLinesTop + kLegendRow * static_cast<double>(chart.lines.size()) + 40);
  Svg svg(kLinesWidth, height, chart.title, lines_in_words(chart));
  svg.text(0, 16, chart.title, Anchor::start, 14, 1, true);
  for (const double tick : vertical.ticks()) {
    svg.line(kLinesLeft, y(tick), right, y(tick), 1, 0.15);
    svg.text(kLinesLeft - 8, y(tick) + 4, chart_number(tick), Anchor::end, 11, 0.8);
  }
  double written = -1e9;  // numbers that would touch are left out
  for (const double tick : horizontal.ticks()) {
    svg.line(x(tick), kLinesBottom, x(tick), kLinesBottom + 5, 1, 0.6);
    const double half = text_width(chart_number(tick), 11) / 2;
    if (x(tick) - half < written + 6) continue;
    svg.text(x(tick), kLinesBottom + 18, chart_number(tick), Anchor::middle, 11, 0.8);
    written = x(tick) + half;
  }
  svg.line(kLinesLeft, kLinesBottom, right, kLinesBottom, 1, 0.6);
  svg.line(kLinesLeft, kLinesTop, kLinesLeft, kLinesBottom, 1, 0.6);
  svg.text((kLinesLeft + right) / 2, kLinesBottom + 38, chart.x_name, Anchor::middle, 11, 0.8);
  svg.text(kLinesLeft, kLinesTop - 6, chart.y_name, Anchor::start, 11, 0.8);
  for (std::size_t i = 0; i < chart.lines.size(); ++i) {
    const ChartLine& line = chart.lines[i];
    const std::string colour = palette_colour(i);
    // Colours repeat; dashes tell the second round from the first.
    const bool dashed = i >= 8;
    std::string d;
    for (const ChartPoint& p : line.points) {
      d += fmt::format("{}{:.1f} {:.1f}", d.empty() ? "M" : "L", x(p.x), y(p.y));
      if (p.low && p.high)
        svg.path(fmt::format("M{0:.1f} {1:.1f}L{0:.1f} {2:.1f}", x(p.x), y(*p.low), y(*p.high)),
                 colour, 1.2, 0.7);
    }
    svg.path(d, colour, 2, 1, dashed, line.name);
    for (const ChartPoint& p : line.points)
      svg.circle(x(p.x), y(p.y), 3, colour,
                 fmt::format("{}: {} at {}", line.name, chart_number(p.y), chart_number(p.x)));
    const double row = kLinesTop + 8 + kLegendRow * static_cast<double>(i);
    svg.path(fmt::format("M{} {}L{} {}", right + 14, row - 4, right + 34, row - 4), colour, 2, 1,
             dashed);
    svg.text(right + 40, row, shortened_to(line.name, kLegend - 42, 11), Anchor::start, 11);
  }
  return svg;
}

}  // namespace fuseline
