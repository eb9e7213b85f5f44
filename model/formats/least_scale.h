// The least scale of numbers that are quantised while a block runs.
#pragma once

namespace fuseline {

// Where the largest number of a group is smaller, its scale is this one: dividing by it is exact,
// and nothing is divided by zero.
inline constexpr double kLeastScale = 0x1p-100;

}  // namespace fuseline
