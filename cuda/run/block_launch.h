// The launch of a whole block: its instructions, counters and workspaces in the GPU's memory.
#pragma once

#include <vector>

#include "cuda/emit/block_source.h"
#include "cuda/run/instruction_time.h"
#include "cuda/run/launch.h"
#include "sim/gpu/gpu.h"

namespace fuseline::cuda {

// MissingError: the GPU is too small for the kernel.
Launches prepare_block(const LaunchContext& context, const BlockKernelSource& kernel,
                       const BlockInstructions& instructions);

// Of the last run of such a launch, which has ended, beside the events that are predicted for
// `described`.
std::vector<InstructionTime> instruction_times(const Launch& launch,
                                               const BlockInstructions& instructions,
                                               const Gpu& described);

}  // namespace fuseline::cuda
