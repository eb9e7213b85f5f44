// The machine-readable output: fuseline.prediction/1 and what `gemm` prints. Keys are
// a contract: additions are allowed, renames are not.
#pragma once

#include <string>
#include <vector>

#include "sim/block/estimate.h"
#include "sim/report/prediction.h"

namespace fuseline {

inline constexpr const char* kPredictionSchema = "fuseline.prediction/1";
inline constexpr const char* kSweepSchema = "fuseline.sweep/1";

// One kernel object, as in a prediction's list.
std::string kernel_json(const KernelEstimate& kernel);
// With its bands, as a kernel of a library.
std::string kernel_json(const KernelEstimate& kernel, const Gpu& gpu, const Workload& workload);

std::string predictions_json(const PredictionCase& c, const std::vector<Prediction>& predictions);

// Several selections (fuseline.sweep/1): each as in fuseline.prediction/1, without the kernels.
struct SweptCase {
  PredictionCase what;
  std::vector<Prediction> predictions;
};
std::string sweep_json(const std::vector<SweptCase>& cases);

}  // namespace fuseline
