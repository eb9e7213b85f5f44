// The report of `compare` for people: at most 100 columns wide.
#pragma once

#include <cstddef>
#include <string>

#include "sim/judge/band_fit.h"
#include "sim/judge/validation.h"
#include "sim/measured/measurement.h"

namespace fuseline {

// The errors by quantity, a pair of columns (mean, bias) per predictor, beside the targets.
std::string error_table_text(const ErrorTable& table);

// The `count` worst blocks, GEMMs and GEMM kernels of that predictor.
std::string worst_cases_text(const ErrorTable& table, std::size_t predictor, std::size_t count);

// Every case of the quantities: measured, and the error of each predictor.
std::string all_cases_text(const ErrorTable& table, const std::vector<Quantity>& quantities);

// Every rival beside the policies that were measured of the same block; empty without rivals.
std::string rivals_text(const Measurements& measurements);

// Kernel by kernel, a measured trace beside a prediction of the same block.
std::string kernels_beside_text(const MeasuredTrace& trace, const PlanEstimate& estimate);

// How well bands hold what was measured, per subject and phase; empty without rows.
std::string coverage_text(const std::vector<Coverage>& coverage);

// One line per case: measured, and predicted by each.
std::string cases_csv(const ErrorTable& table);

}  // namespace fuseline
