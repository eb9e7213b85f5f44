// Whether the counters here tell the truth: a copy of known size is measured before anything else.
#pragma once

#include <string>

#include "cuda/compile/compiler.h"
#include "cuda/counters/range_profiler.h"
#include "cuda/driver/driver.h"

namespace fuseline::cuda {

struct CounterCheck {
  Bytes expected;  // each way
  Bytes read, written, l2;
  double margin = 0;  // allowed relative error: what L2 holds at most, and 1 %
  [[nodiscard]] bool passed() const;
};

// A kernel of ours copies 16 times the L2 of the GPU (less where memory is short, 4 times at
// least) twice; the second copy is measured, so that as much is left dirty in L2 before it as after
// it. MissingError: no toolkit to compile the kernel, or no memory.
CounterCheck check_counters(const Device& device, const RangeProfiler& profiler);

// The copy's kernel, counter_check_copy.
Source counter_check_source();

// One line: "1.007 GB copied: counters say 1.006 GB read and 1.005 GB written".
std::string describe(const CounterCheck& check);

}  // namespace fuseline::cuda
