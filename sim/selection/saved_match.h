// Whether a saved prediction is of what was measured.
#pragma once

#include <optional>
#include <string>

#include "sim/measured/measurement.h"
#include "sim/selection/saved_prediction.h"

namespace fuseline {

// InputError naming the field, the prediction's value and the measured ones: another GPU than the
// measurement's, or than --gpu names; a model, phase, batch, seq, context or dtype, with those
// before it in this order, or policies, of which no block was measured. `path`: of the prediction.
void check_match(const SavedPredictions& saved, const Measurements& measurements,
                 const std::optional<std::string>& gpu_option, const std::string& path);

}  // namespace fuseline
