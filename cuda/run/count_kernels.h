// A block's kernels under the hardware's counters.
#pragma once

#include <functional>
#include <vector>

#include "cuda/counters/gpu_state.h"
#include "cuda/counters/range_profiler.h"
#include "cuda/run/block_on_gpu.h"
#include "sim/measured/measurement.h"

namespace fuseline::cuda {

struct CountedBlock {
  CountedRange block;                   // one layer, of a chain of all of them without a pause
  std::vector<MeasuredKernel> kernels;  // one for each of the plan's
};

// Caches are as warm as in a replay: all layers run before the one that counts, while the profiler
// is at work already. Medians of three passes. `behind` runs behind the layers, ahead of what
// counts: work that drives the block's own tensors out of L2.
CountedBlock count_kernels(const RangeProfiler& profiler, Stream& stream, BlockOnGpu& block,
                           const std::function<void(Stream&)>& behind = {});

// The summary of several times of watching.
GpuStateSummary merged(const std::vector<GpuStateSummary>& parts);

}  // namespace fuseline::cuda
