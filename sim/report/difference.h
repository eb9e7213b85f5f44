// What differs between two predictions of the same work: kernels, bytes, time, and whether the
// difference is larger than the estimates are sure.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "model/config/config.h"
#include "sim/block/estimate.h"
#include "sim/sure/band.h"

namespace fuseline {

// A kernel of one plan or of both, by its name; a missing one is empty.
struct KernelDifference {
  std::string name;
  std::optional<KernelEstimate> before, after;

  [[nodiscard]] Seconds time() const;      // after - before
  [[nodiscard]] double hbm_bytes() const;  // after - before; may be negative
};

struct PlanDifference {
  std::string policy;
  PlanEstimate before, after;
  std::vector<KernelDifference> kernels;  // in the order of `after`, then those that went
  double gain = 1;                        // before.time / after.time
  Band band{};                            // of the gain
  std::string verdict{};                  // of `after`

  [[nodiscard]] double slower_by() const { return after.time / before.time - 1; }
};

// One side: where, of what, and the plans by policy.
struct PredictedSide {
  std::string name{}, gpu{};
  Workload workload{};
  std::vector<PlanEstimate> plans{};
};

// Of the policies that both sides have, in the order of `before`. The band is that of the less
// certain side's GPU; with equal times there is nothing to call.
std::vector<PlanDifference> differences(const PredictedSide& before, const PredictedSide& after);

}  // namespace fuseline
