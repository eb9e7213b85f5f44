// Predicted and measured runs as a trace that Perfetto (ui.perfetto.dev) and chrome://tracing open.
#pragma once

#include <string>
#include <vector>

#include "sim/report/prediction.h"

namespace fuseline {

// The JSON of the trace event format. Each policy is a process; its kernels follow each other
// without gaps, one row for the prediction and, where there is one, a row for the measured kernels.
// A measurement has durations and no begin times, so its kernels stand end to end too.
std::string chrome_trace(const PredictionCase& c, const std::vector<Prediction>& predictions);

}  // namespace fuseline
