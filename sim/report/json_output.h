// The machine-readable output: fuseline.prediction/1 and what `gemm` and `compare` print. Keys are
// a contract: additions are allowed, renames are not.
#pragma once

#include <string>
#include <vector>

#include "sim/block/estimate.h"
#include "sim/judge/validation.h"
#include "sim/measured/measurement.h"
#include "sim/report/prediction.h"

namespace fuseline {

inline constexpr const char* kPredictionSchema = "fuseline.prediction/1";
inline constexpr const char* kSweepSchema = "fuseline.sweep/1";

// One kernel object, as in a prediction's list.
std::string kernel_json(const KernelEstimate& kernel);

std::string predictions_json(const PredictionCase& c, const std::vector<Prediction>& predictions);

// Several selections (fuseline.sweep/1): each as in fuseline.prediction/1, without the kernels.
struct SweptCase {
  PredictionCase what;
  std::vector<Prediction> predictions;
};
std::string sweep_json(const std::vector<SweptCase>& cases);

std::string error_table_json(const Measurements& measurements, const ErrorTable& table);

}  // namespace fuseline
