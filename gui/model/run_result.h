// How one run's result comes about.
#pragma once

#include "gui/model/results.h"

namespace fuseline::gui {

// Both expect `result.block`. InputError: an unknown policy or one without a plan for the phase,
// illegal custom choices.
void fill_predicted(RunResult& result, const Run& run);

// MissingError: nothing was measured of this block, or it was on another GPU; the text says what
// was measured, or how to measure.
void fill_measured(RunResult& result, const Run& run, const Measurements& measurements);

}  // namespace fuseline::gui
