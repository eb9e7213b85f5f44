// The texts of a measurement folder's files. Optional columns are written where at least one row
// has a value; times to the picosecond, clocks to the kilohertz, power to the milliwatt.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "sim/measured/measurement.h"

namespace fuseline {

// With a header line. InputError (field, value, allowed): a text with a line break.
std::string blocks_csv(std::span<const MeasuredBlock> blocks);
std::string kernels_csv(std::span<const MeasuredTrace> traces);
std::string gemms_csv(std::span<const MeasuredGemm> gemms);

// The fields that are not empty. InputError (field, value, allowed): text that is not UTF-8.
std::string meta_toml(const MeasurementMeta& meta);

// All columns that the functions above know. `file`: "block.csv", "rivals.csv", "kernels.csv" or
// "gemm.csv".
std::vector<std::string> measurement_columns(const std::string& file);

}  // namespace fuseline
