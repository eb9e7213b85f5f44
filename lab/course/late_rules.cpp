#include "lab/course/late_rules.h"

#include <algorithm>

namespace fuseline::lab {

Lateness lateness(Moment handed_in, Moment deadline, const LateRules& rules) {
  const std::chrono::seconds late =
      handed_in - deadline - std::chrono::minutes{rules.grace_minutes};
  if (late.count() <= 0) return {};
  Lateness result;
  result.days = std::chrono::ceil<std::chrono::days>(late).count();
  result.too_late = result.days > rules.days;
  return result;
}

std::int64_t late_deduction(std::int64_t points, const Lateness& late, const LateRules& rules) {
  if (late.too_late) return points * 100;
  const std::int64_t percent = std::min<std::int64_t>(late.days * rules.percent_per_day, 100);
  return points * percent;  // percent of points = hundredths
}

}  // namespace fuseline::lab
