// Lines over one varied size, each with the band of its values.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/draw/svg.h"

namespace fuseline {

struct ChartPoint {
  double x = 0, y = 0;
  std::optional<double> low = {}, high = {};
};

struct ChartLine {
  std::string name;
  std::vector<ChartPoint> points;  // by ascending x
};

// The axes are logarithmic where values differ by more than a factor of eight; else they begin at
// 0.
struct LineChart {
  std::string title, x_name, y_name;
  std::vector<ChartLine> lines;
};

Svg draw(const LineChart& chart);

}  // namespace fuseline
