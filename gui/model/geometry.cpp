#include "gui/model/geometry.h"

#include <algorithm>
#include <cmath>

namespace fuseline::gui {

double nice_above(double value) {
  if (!(value > 0)) return 1;
  const double decade = std::pow(10.0, std::floor(std::log10(value)));
  for (const double factor : {1.0, 2.0, 5.0}) {
    if (value <= factor * decade * (1 + 1e-12)) return factor * decade;
  }
  return 10 * decade;
}

std::vector<double> round_ticks(double high, int most) {
  const double step = nice_above(high / std::max(1, most - 1));
  std::vector<double> ticks;
  for (int i = 0; i * step <= high * (1 + 1e-9); ++i) ticks.push_back(i * step);
  return ticks;
}

std::vector<double> decade_ticks(Range range) {
  std::vector<double> ticks;
  const int last = static_cast<int>(std::floor(std::log10(range.high) + 1e-9));
  for (int e = static_cast<int>(std::ceil(std::log10(range.low) - 1e-9)); e <= last; ++e) {
    ticks.push_back(std::pow(10.0, e));
  }
  return ticks;
}

}  // namespace fuseline::gui
