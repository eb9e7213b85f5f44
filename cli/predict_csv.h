// Predictions as CSV: one line per policy, or one per kernel. Units are in the column names.
#pragma once

#include <string>
#include <vector>

#include "cli/prediction.h"
#include "cli/selection.h"

namespace fuseline {

std::string predictions_csv(const Selection& selection, const std::vector<Prediction>& predictions);
std::string kernels_csv(const Selection& selection, const std::vector<Prediction>& predictions);

// A cell, in quotes where it holds a comma, a quote or a line break.
std::string csv_cell(const std::string& text);

}  // namespace fuseline
