// What was measured of a claim's models in its phases: speed-ups of one execution over another.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "sim/judge/audit/claim.h"
#include "sim/measured/measurement.h"

namespace fuseline::audit {

// Blocks that were measured under both, of one GPU.
struct MeasuredRatio {
  std::string gpu;  // of the measurement
  std::string from, to;
  bool as_claimed = false;  // a baseline and a policy of the claim; otherwise the nearest there is
  Range speed_up;
  std::size_t cases = 0;
};

// The claim's own baselines and policies where they were measured, one entry a pair and GPU;
// otherwise, for each GPU, the largest speed-up over one of its baselines. Empty for kinds that
// compare nothing, and for claims about a part of the block.
std::vector<MeasuredRatio> measured_ratios(const Claim& claim,
                                           const std::vector<Measurements>& measurements);

// "eager to torch-compile 1.05x to 1.31x in 9 blocks on h200"
std::string describe(const MeasuredRatio& ratio);

// All folders of scenarios/measurements.
std::vector<Measurements> shipped_measurements();

}  // namespace fuseline::audit
