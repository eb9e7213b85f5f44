// The machine-readable output: fuseline.prediction/1 and what `gemm` and `compare` print. Keys are
// a contract: additions are allowed, renames are not.
#pragma once

#include <string>
#include <vector>

#include "cli/prediction.h"
#include "cli/selection.h"
#include "sim/estimate.h"
#include "sim/measurement.h"
#include "sim/validation.h"

namespace fuseline {

inline constexpr const char* kPredictionSchema = "fuseline.prediction/1";

// One kernel object, as in a prediction's list.
std::string kernel_json(const KernelEstimate& kernel);

std::string predictions_json(const Selection& selection,
                             const std::vector<Prediction>& predictions);

std::string error_table_json(const Measurements& measurements, const ErrorTable& table);

}  // namespace fuseline
