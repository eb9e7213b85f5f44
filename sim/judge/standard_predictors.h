// The predictors that measurements are judged with.
#pragma once

#include <vector>

#include "sim/gpu/gpu.h"
#include "sim/judge/validation.h"
#include "sim/measured/measurement.h"

namespace fuseline {

// In order: roofline, hierarchy, and, where files with constants fitted without a model stand
// beside the measurements, "left out": each model judged by constants that have not seen it.
std::vector<Predictor> standard_predictors(const Gpu& gpu, const Measurements& measurements);

}  // namespace fuseline
