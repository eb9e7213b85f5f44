// What the simulator and the machine's limits say of a claim in one setting.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/judge/audit/baseline.h"
#include "sim/judge/audit/predictions.h"
#include "sim/judge/audit/setting.h"

namespace fuseline::audit {

// How far a prediction may be from a figure that it still supports. Of the shipped measurements,
// predicted speed-ups between eager, composed and torch-compile are off by 2 to 4 % in the mean (12
// % at worst), times of blocks by less than 10 %, their HBM bytes by less than 12 %.
inline constexpr double kRatioTolerance = 0.05;
inline constexpr double kTimeTolerance = 0.10;
inline constexpr double kBytesTolerance = 0.12;
inline constexpr double kShareTolerance = 0.05;  // of shares, absolute
// How much faster than limits_of() another sample of the GPU may be. The limits take the sustained
// bandwidth and the rate of tensor cores at the clock that it is quoted at; of the shipped GPUs the
// datasheet's bandwidth is at most 9 % above the one, the boost clock at most 9 % above the other.
inline constexpr double kLimitTolerance = 0.10;

// Numbers are in the kind's own quantity: factor (speed_up, latency, bandwidth_ratio), fraction
// (latency_reduction, gemm_time_share, coverage; compute_bound: tensor cores' time over the longer
// of theirs and HBM's), gigabytes of 10^9 (fits_in_memory), money (cost).
struct Outcome {
  double predicted = 0;
  // The boldest figure that no implementation passes here: the slowest baseline against limits that
  // are kLimitTolerance better.
  double limit = 0;
  SlowestBaseline baseline;          // where times are compared
  std::vector<double> measured;      // speed-ups of this setting that were measured
  bool reached = false;              // the prediction, or a measurement, supports the figure
  bool bolder = false;               // it says more than the figure
  bool possible = false;             // the limits allow the figure
  std::string obstacle;              // why not possible
  Seconds before, after;             // predicted, of what is compared
  Seconds least;                     // its time at the limits
  std::int64_t launches_before = 0;  // of one block, where whole blocks are compared
  std::int64_t gpus = 1;             // cost: GPUs whose memories hold the model
  bool before_too = false;           // fits_in_memory: the baseline fits as well
};

// The predictions that evaluate() will ask for.
std::vector<PolicyCase> cases_of(const Claim& claim, const Setting& setting);

// Not for kind `other`.
Outcome evaluate(const Claim& claim, const Setting& setting, const Predictions& predictions,
                 const Baselines& baselines);

// The speed-ups that support the claim, tolerance and reading error included.
Range supporting_speed_ups(const Claim& claim);

}  // namespace fuseline::audit
