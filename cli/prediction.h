// What `predict` found for one policy.
#pragma once

#include <optional>

#include "sim/estimate.h"
#include "sim/measurement.h"
#include "sim/whole_model.h"

namespace fuseline {

struct Prediction {
  PlanEstimate block;                     // one block
  std::optional<LayersEstimate> layers;   // when more than one block is asked for
  std::optional<MeasuredBlock> measured;  // the same case, where it was measured
  std::optional<MeasuredTrace> trace;
  std::optional<PlanEstimate> replayed;  // the block as it is measured: replays on the same input
};

}  // namespace fuseline
