// Differences to the baseline: absolute, relative, and how much they matter.
#pragma once

#include <cstdint>
#include <string>

#include "base/units.h"
#include "gui/model/roles.h"

namespace fuseline::gui {

// By the magnitude of the relative difference: below 1 % is nearly equal, and the repeatability of
// the shipped measurements (spread of 20 replays) is of that order; below 5 % small, below 20 %
// medium, else large.
enum class DeltaSize : std::uint8_t { neutral, small, medium, large };

struct Delta {
  double relative = 0;  // (value - base) / base; infinite from zero to something
  DeltaSize size = DeltaSize::neutral;
  std::string absolute_text;  // "−120.5 MB"
  std::string relative_text;  // "−12.3 %"; "new" where the base is zero
  Colour colour;              // less is better
};

Delta delta_of(Bytes base, Bytes value);
Delta delta_of(Seconds base, Seconds value);

DeltaSize size_of_delta(double relative);

}  // namespace fuseline::gui
