// Reads what `predict --format json` wrote.
#pragma once

#include <string>
#include <vector>

#include "sim/block/estimate.h"
#include "sim/measured/measurement.h"

namespace fuseline {

struct SavedPrediction {
  BlockCase block;  // its execution is the policy
  PlanEstimate estimate;
};

struct SavedPredictions {
  std::string gpu;
  std::vector<SavedPrediction> list;
};

// InputError: not readable, not JSON, another schema, a missing key or one of the wrong type.
SavedPredictions load_predictions(const std::string& path);

}  // namespace fuseline
