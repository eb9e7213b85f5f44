// Points and boxes in data units; y grows downwards in graphs, upwards in charts.
#pragma once

#include <vector>

namespace fuseline::gui {

struct Point {
  double x = 0;
  double y = 0;
  friend bool operator==(const Point&, const Point&) = default;
};

struct Box {  // by its centre
  Point centre;
  double width = 0;
  double height = 0;
  friend bool operator==(const Box&, const Box&) = default;
};

struct Range {
  double low = 0;
  double high = 1;
  friend bool operator==(const Range&, const Range&) = default;
};

// The smallest of 1, 2, 5 times a power of ten that is at least `value`; 1 for zero and less.
double nice_above(double value);

// At most `most` round steps from 0 to `high`, both ends included where they are round.
std::vector<double> round_ticks(double high, int most);

// The powers of ten in the range, as exponents' values: 1e3, 1e4, ...
std::vector<double> decade_ticks(Range range);

}  // namespace fuseline::gui
