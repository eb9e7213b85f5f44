// The fitted constants of the hierarchy model outside GEMM mainloops (those are in
// sim/gpu/gemm_constants.h): names, units, defaults per architecture, and the range a fit may
// search.
#pragma once

#include <array>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sim/gpu/gpu.h"

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

// What a constant may be, so that every estimate stays finite and positive.
struct ConstantRange {
  std::string name;
  double least = 0, most = 0;
};

// Of every name that a [calibration] section may use: those above, of sim/gpu/gemm_constants.h and
// of sim/gpu/power.h.
std::vector<ConstantRange> constant_ranges();

// The GPU's own value of the constant, or `fallback`. InputError (the GPU's name as file) for a
// value out of its range. InternalError for a name that `ranges` lacks.
double own_constant(const Gpu& gpu, std::span<const ConstantRange> ranges, std::string_view name,
                    double fallback);

// The GPU's own value where its file has one, the architecture's default otherwise. InternalError
// for an unknown name; InputError for a value out of range.
double calibrated(const Gpu& gpu, std::string_view name);

}  // namespace fuseline
