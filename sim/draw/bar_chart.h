// Horizontal bars with whiskers: one amount for each of several things.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/draw/svg.h"

namespace fuseline {

struct Bar {
  std::string label;
  std::vector<double> parts;                  // drawn end to end; the place is the colour
  std::optional<double> low = {}, high = {};  // the ends of the 90 % band of the sum
  std::optional<double> mark = {};            // what was measured, as a diamond
  std::string note = {};                      // behind the bar
};

struct BarChart {
  std::string title, unit;         // "µs"
  std::vector<std::string> parts;  // names of the parts; one needs no legend
  std::vector<Bar> bars;
  std::optional<double> limit = {};  // a dashed line
  std::string limit_name = {};
};

Svg draw(const BarChart& chart);

}  // namespace fuseline
