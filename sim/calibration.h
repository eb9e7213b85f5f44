// The fitted constants of the hierarchy model outside GEMM mainloops (those are in
// sim/gemm_constants.h): names, units, defaults per architecture, and the range a fit may search.
#pragma once

#include <array>
#include <span>
#include <string_view>

#include "sim/gpu.h"

namespace fuseline {

struct CalibrationConstant {
  const char* name;  // key of Gpu::calibration
  const char* unit;
  const char* meaning;
  std::array<double, 4> defaults;  // by Architecture: Ampere, Ada, Hopper, Blackwell
  double lower, upper;             // allowed range; a value outside is the user's mistake
};

// All constants, sorted by name.
std::span<const CalibrationConstant> calibration_constants();

// The GPU's own value where its file has one, the architecture's default otherwise. InternalError
// for an unknown name; InputError for a value out of range.
double calibrated(const Gpu& gpu, std::string_view name);

}  // namespace fuseline
