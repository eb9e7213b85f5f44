// What `compare` is asked for: predictions beside measurements.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "sim/judge/band_fit.h"
#include "sim/judge/validation.h"
#include "sim/measured/measurement.h"
#include "sim/selection/selection.h"

namespace fuseline {

struct MeasuredComparison {
  Measurements measurements;  // those that the selection leaves
  std::optional<Gpu> gpu;     // that was predicted; empty for a saved prediction
  std::vector<Predictor> predictors;
  ErrorTable table;
  std::vector<Coverage> coverage;  // how well the shipped bands hold what was measured
};

// `files`: [PREDICTION.json] MEASUREMENT. Each word of `only` that was said must agree with a case.
// InputError: no file, a bad one, words that leave no case, a prediction of something else.
MeasuredComparison compare_measured(
    const std::vector<std::string>& files, const SelectionWords& only,
    const std::function<void(std::size_t done, std::size_t count)>& progress = {});

// The most detailed predictor that fits the hardware as shipped: whose worst cases are shown.
std::size_t judged_predictor(const ErrorTable& table);

}  // namespace fuseline
