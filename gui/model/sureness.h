// How sure the numbers of a run are, for whiskers and tables: the ends of the 90 % bands.
#pragma once

#include <optional>
#include <string>

#include "gui/model/results.h"

namespace fuseline::gui {

struct SureFigures {
  Seconds time_low, time_high;
  Bytes hbm_low, hbm_high;
};

// Of a prediction's block. Empty: of a measurement, of a roofline, of a run without a result.
std::optional<SureFigures> sure_figures(const RunView& run);
// Of one of its launches; empty also for a measured one.
std::optional<SureFigures> sure_figures(const RunView& run, const KernelRow& kernel);

// Time of the baseline over that of the run, with its band and what it makes of the gain.
struct SureGain {
  double gain = 1, low = 1, high = 1;
  std::string verdict;  // "faster", "slower", "too close to call", "the same"
};

// Empty where one of the two is no prediction of the hierarchy, and where they are of different
// work.
std::optional<SureGain> sure_gain(const RunView& base, const RunView& run);

}  // namespace fuseline::gui
