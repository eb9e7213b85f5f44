// Whether plans train as well as fp64 does, within what 16 bits cost the unfused plan.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/training/train.h"

namespace fuseline::training {

struct CurveVerdict {
  std::string name;
  double first = 0;        // loss of the first step
  double last = 0;         // mean of the last window
  double largest_gap = 0;  // to fp64, at one step
  std::int64_t at_step = 0;
  double smoothed_gap = 0;  // the largest mean gap over a window, by magnitude
  double allowed = 0;       // for smoothed_gap; 0: not judged
  std::string problem{};    // empty: it trains
};

struct Verdict {
  std::int64_t window = 1;
  std::vector<CurveVerdict> curves;  // in the training's order

  [[nodiscard]] bool passed() const;
  // One line: what holds, or what is wrong.
  [[nodiscard]] std::string line() const;
};

// Windows are a tenth of the steps. The rule, for every run:
//   its loss is finite in every step, and the last window's mean is a tenth below the first loss;
//   its smoothed gap is below a tenth of how far the fp64 loss fell;
//   policies but `unfused`: the smoothed gap is below twice the larger of two others, that of
//   `unfused` and that of the nudged fp64 run. The first is what storing in the same type costs
//   without fusion. The second is how far one rounding of the first weights drives two curves
//   apart: a gap that small says nothing, even where the unfused curve happens to lie closer.
Verdict judge(const Training& training);

}  // namespace fuseline::training
