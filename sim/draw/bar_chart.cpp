#include "sim/draw/bar_chart.h"

#include <algorithm>
#include <numeric>

#include <fmt/format.h>

namespace fuseline {

namespace {

constexpr double kBarsWidth = 820, kBarsRow = 30, kBarsTop = 44, kBarsThickness = 18,
                 kBarsNote = 150;

double bar_length(const Bar& bar) {
  return std::accumulate(bar.parts.begin(), bar.parts.end(), 0.0);
}

std::string bars_in_words(const BarChart& chart) {
  std::string text;
  for (const Bar& bar : chart.bars) {
    text += fmt::format("{}{}: {} {}", text.empty() ? "" : "; ", bar.label,
                        chart_number(bar_length(bar)), chart.unit);
    if (bar.low && bar.high)
      text += fmt::format(", 90 % band {} to {}", chart_number(*bar.low), chart_number(*bar.high));
    if (bar.mark) text += fmt::format(", measured {}", chart_number(*bar.mark));
  }
  return text;
}

constexpr double kLegendGap = 28;  // from a sign to the name before it

double legend_width(const BarChart& chart) {
  double width = 0;
  const auto add = [&](const std::string& name) { width += text_width(name, 11) + 8 + kLegendGap; };
  if (chart.limit) add(chart.limit_name);
  if (std::ranges::any_of(chart.bars, [](const Bar& bar) { return bar.mark.has_value(); }))
    add("measured");
  if (chart.parts.size() > 1)
    for (const std::string& part : chart.parts) add(part);
  return width;
}

}  // namespace

Svg draw(const BarChart& chart) {
  double most = chart.limit.value_or(0), label_width = 40;
  bool measured = false;
  for (const Bar& bar : chart.bars) {
    most = std::max({most, bar_length(bar), bar.high.value_or(0), bar.mark.value_or(0)});
    label_width = std::max(label_width, text_width(bar.label));
    measured = measured || bar.mark.has_value();
  }
  label_width = std::min(label_width, 190.0);
  const std::vector<double> ticks = axis_ticks(most);
  const double legend_y = text_width(chart.title, 14) + legend_width(chart) > kBarsWidth ? 34 : 16;
  const double top = kBarsTop + legend_y - 16;
  const double left = label_width + 18, right = kBarsWidth - kBarsNote,
               bottom = top + kBarsRow * static_cast<double>(chart.bars.size());
  const auto x = [&](double value) { return left + (right - left) * value / ticks.back(); };
  Svg svg(kBarsWidth, bottom + 42, chart.title, bars_in_words(chart));
  svg.text(0, 16, chart.title, Anchor::start, 14, 1, true);
  // The legend stands at the right of the title's line, or below a long title.
  double at = kBarsWidth;
  const auto legend = [&](const std::string& name, const auto& sign) {
    at -= text_width(name, 11);
    svg.text(at, legend_y, name, Anchor::start, 11);
    at -= 8;
    sign(at - 8);
    at -= kLegendGap;
  };
  if (chart.limit)
    legend(chart.limit_name, [&](double sx) {
      svg.line(sx - 10, legend_y - 4, sx + 5, legend_y - 4, 1.5, 0.8, true);
    });
  if (measured) legend("measured", [&](double sx) { svg.diamond(sx, legend_y - 4, 5); });
  if (chart.parts.size() > 1) {
    for (std::size_t p = chart.parts.size(); p-- > 0;)
      legend(chart.parts[p],
             [&](double sx) { svg.rect(sx - 6, legend_y - 10, 11, 11, palette_colour(p)); });
  }
  for (const double tick : ticks) {
    svg.line(x(tick), top - 6, x(tick), bottom, 1, tick == 0 ? 0.6 : 0.15);
    svg.text(x(tick), bottom + 16, chart_number(tick), Anchor::middle, 11, 0.8);
  }
  svg.text((left + right) / 2, bottom + 34, chart.unit, Anchor::middle, 11, 0.8);
  for (std::size_t i = 0; i < chart.bars.size(); ++i) {
    const Bar& bar = chart.bars[i];
    const double y = top + kBarsRow * static_cast<double>(i), middle = y + kBarsThickness / 2;
    svg.text(left - 8, middle + 4, shortened_to(bar.label, label_width), Anchor::end);
    double begin = 0;
    for (std::size_t p = 0; p < bar.parts.size(); ++p) {
      const std::string name = chart.parts.size() > 1 ? ", " + chart.parts[p] : "";
      svg.rect(x(begin), y, x(begin + bar.parts[p]) - x(begin), kBarsThickness, palette_colour(p),
               fmt::format("{}{}: {} {}", bar.label, name, chart_number(bar.parts[p]), chart.unit));
      begin += bar.parts[p];
    }
    if (bar.low && bar.high) {
      svg.line(x(*bar.low), middle, x(*bar.high), middle, 1.5);
      for (const double end : {*bar.low, *bar.high})
        svg.line(x(end), middle - 5, x(end), middle + 5, 1.5);
    }
    if (bar.mark)
      svg.diamond(
          x(*bar.mark), middle, 6,
          fmt::format("{}: measured {} {}", bar.label, chart_number(*bar.mark), chart.unit));
    svg.text(right + 12, middle + 4, bar.note, Anchor::start, 11, 0.9);
  }
  if (chart.limit) svg.line(x(*chart.limit), top - 6, x(*chart.limit), bottom, 1.5, 0.8, true);
  return svg;
}

}  // namespace fuseline
