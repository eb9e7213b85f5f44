// Under which choices a claim holds: what the settings that reach it have in common.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "sim/judge/audit/setting.h"

namespace fuseline::audit {

// A setting's dimensions, and whether the claim holds there.
struct Point {
  std::vector<Dimension> dimensions;
  bool holds = false;
};

struct Conditions {
  // What every point that holds has and some other lacks: "baseline unfused", "tokens >= 8,192".
  std::vector<std::string> necessary;
  std::size_t meeting = 0;  // points that meet all of these
  std::size_t holding = 0;  // of them, those that hold
};

// All points have the same dimensions in the same order. A numeric dimension whose allowed values
// are all above or all below the others becomes a bound. Without a point that holds: empty.
Conditions conditions_of(const std::vector<Point>& points);

// Where no condition is necessary: the dimension whose values have conditions of their own, as
// "phase forward, or phase decode with batch >= 64". Empty unless at least nine in ten of the
// points that meet it hold.
std::string alternatives(const std::vector<Point>& points);

// How often the claim holds at one value of a dimension.
struct ShareHolding {
  std::string value;
  std::size_t holding = 0;
  std::size_t points = 0;

  [[nodiscard]] double share() const {
    return static_cast<double>(holding) / static_cast<double>(points);
  }
};
// One for each value of the dimension at that index: numbers in order, others as they appear.
std::vector<ShareHolding> shares_holding(const std::vector<Point>& points, std::size_t dimension);

}  // namespace fuseline::audit
