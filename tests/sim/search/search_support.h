// Options and small models that several suites of the search use.
#pragma once

#include "model/config/config.h"
#include "model/policy.h"
#include "sim/search/search.h"
#include "tests/sim/sim_support.h"

namespace fuseline::test {

// Two sums of the same times in another order.
inline constexpr double kSumRounding = 1e-9;

inline SearchOptions until_complete() {
  SearchOptions options;
  options.budget_seconds = 0;
  options.decisions = false;
  return options;
}

inline SearchOptions against(const Workload& work) {
  SearchOptions options = until_complete();
  for (const PolicyInfo& p : policies())
    if (p.trains || work.phase != Phase::train) options.policies.push_back(p.name);
  return options;
}

inline Workload training(std::int64_t batch, std::int64_t seq) {
  Workload work = forward(batch, seq);
  work.phase = Phase::train;
  return work;
}

// Plans that no kernels of ours run as they are predicted.
inline bool beyond_own(const PolicyComparison& p) {
  return p.outside.starts_with("one launch") || p.outside.starts_with("its attention rotates");
}

}  // namespace fuseline::test
