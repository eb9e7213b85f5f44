// The report of `predict` for people: at most 100 columns wide.
#pragma once

#include <string>
#include <vector>

#include "cli/selection.h"
#include "sim/report/prediction.h"
#include "sim/sure/estimate_bands.h"

namespace fuseline {

// `meta` is null when no measurement was looked at. `kernels`: a table of kernels per policy too.
std::string predictions_table(const Selection& selection,
                              const std::vector<Prediction>& predictions,
                              const MeasurementMeta* meta, bool kernels);

// One line per kernel: time, bytes per memory level, bound, tile; with the 90 % band of the time of
// that policy's kernels where `sure` is not null.
std::string kernel_table(const std::vector<KernelEstimate>& kernels, const Sureness* sure = nullptr,
                         const std::string& policy = {});

// "NVIDIA H200 SXM 141 GB: 132 SMs, boost 1980 MHz, ..." after the prefix and, where no
// constant was fitted on it, whether it was checked.
std::string describe(const Gpu& gpu, const std::string& prefix = {});

}  // namespace fuseline
