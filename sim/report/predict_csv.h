// Predictions as CSV: one line per policy, or one per kernel. Units are in the column names.
#pragma once

#include <string>
#include <vector>

#include "sim/report/prediction.h"

namespace fuseline {

// The names of the columns, and one line for each policy.
std::string predictions_csv_header();
std::string predictions_csv_rows(const PredictionCase& c,
                                 const std::vector<Prediction>& predictions);

// Both together.
std::string predictions_csv(const PredictionCase& c, const std::vector<Prediction>& predictions);
std::string kernels_csv(const PredictionCase& c, const std::vector<Prediction>& predictions);

}  // namespace fuseline
