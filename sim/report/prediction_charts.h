// Predictions as drawings: times with bands, traffic, kernels along the time, a plan's kernels and
// the tensors between them.
#pragma once

#include <string>
#include <vector>

#include "sim/draw/svg.h"
#include "sim/report/explained_plan.h"
#include "sim/report/json_output.h"
#include "sim/report/prediction.h"

namespace fuseline {

// A bar for each policy: predicted time with its band, the measured one where there is one, and the
// time at the block's limits.
Svg draw_times(const PredictionCase& c, const std::vector<Prediction>& predictions);

// A bar for each policy: HBM bytes read and written, and the block's compulsory bytes.
Svg draw_traffic(const PredictionCase& c, const std::vector<Prediction>& predictions);

// A row for each policy: its kernels one after the other, as wide as their times, coloured by what
// bounds them.
Svg draw_timelines(const std::vector<Prediction>& predictions);

// The kernels of a plan from top to bottom with their operators and times; a curve for each tensor
// that one kernel stores and another loads, dashed where L2 still holds it.
Svg draw_plan(const ExplainedPlan& plan);

// Time over the size that the cases differ in (batch, seq or context), a line for each combination
// of the rest. Where several sizes differ, the one with the most values. InputError: no size
// differs.
Svg draw_sweep(const std::vector<SweptCase>& cases);

}  // namespace fuseline
