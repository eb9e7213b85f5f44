// When the instructions of a launch ran on the GPU, and when they were predicted to.
#pragma once

#include <cstdint>
#include <string>

#include "base/units.h"

namespace fuseline::cuda {

// Times in nanoseconds since the first instruction of all began.
struct InstructionTime {
  int sm = 0;
  int index = 0;     // in the SM's list
  std::string step;  // "gate_up"
  std::string text;  // as text_of() has it
  std::int64_t begin = 0;
  std::int64_t data = 0;  // its first slice was there; 0: it has none
  std::int64_t end = 0;
  std::int64_t predicted_begin = 0, predicted_end = 0;
};

}  // namespace fuseline::cuda
