// What it costs to hand in late.
#pragma once

#include <cstdint>

#include "lab/course/moment.h"

namespace fuseline::lab {

struct LateRules {
  std::int64_t percent_per_day = 10;  // of the points reached, for each day begun
  std::int64_t days = 5;              // what comes later than that is worth nothing
  std::int64_t grace_minutes = 0;     // after the deadline, and still in time
};

struct Lateness {
  std::int64_t days = 0;  // begun since the deadline and its grace; 0: in time
  bool too_late = false;  // by more days than the rules allow
};

Lateness lateness(Moment handed_in, Moment deadline, const LateRules& rules);

// Hundredths of a point, at most all of them.
std::int64_t late_deduction(std::int64_t points, const Lateness& late, const LateRules& rules);

}  // namespace fuseline::lab
