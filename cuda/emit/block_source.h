// The one launch of policy whole-block as CUDA source: an interpreter of instructions
// (cuda/kernels/block/), compiled for the block's sequences and heads.
#pragma once

#include <string>

#include "cuda/compile/compiler.h"
#include "model/instructions/instructions.h"
#include "model/plan.h"

namespace fuseline::cuda {

struct BlockKernelSource {
  Source source;
  std::string function;  // FUNCTION_shared_bytes is a constant beside it
  DecodeBlock block;
};

// Whether the kernel's phases share one launch.
bool is_block_kernel(const Kernel& kernel);
// Why no code of ours runs such a kernel with the target's instructions; empty: it runs.
std::string block_not_built(const Graph& graph, const Kernel& kernel, SmTarget target);
// MissingError with that reason.
BlockKernelSource block_kernel_source(const Plan& plan, const Kernel& kernel, SmTarget target);

// What the kernel can hold, on a GPU of so many SMs.
InstructionSizes block_sizes(int multiprocessors);

}  // namespace fuseline::cuda
