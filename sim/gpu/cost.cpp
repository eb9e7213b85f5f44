#include "sim/gpu/cost.h"

namespace fuseline {

Money cost_per_million_tokens(MoneyPerHour price, Seconds time, const Workload& workload) {
  constexpr double kSecondsPerHour = 3600;
  const double hours = time.value() / kSecondsPerHour;
  return Money(price.value() * hours / static_cast<double>(workload.rows()) * 1e6);
}

const char* tokens_paid_for(Phase phase) {
  switch (phase) {
    case Phase::forward:
      return "prompt";
    case Phase::decode:
      return "generated";
    case Phase::train:
      return "trained";
  }
  return "?";
}

}  // namespace fuseline
