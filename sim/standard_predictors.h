// The predictors that measurements are judged with.
#pragma once

#include <vector>

#include "sim/gpu.h"
#include "sim/measurement.h"
#include "sim/validation.h"

namespace fuseline {

// In order: roofline, hierarchy, and, where files with constants fitted without a model stand
// beside the measurements, "left out": each model judged by constants that have not seen it.
std::vector<Predictor> standard_predictors(const Gpu& gpu, const Measurements& measurements);

}  // namespace fuseline
