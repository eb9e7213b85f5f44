// A chain of two products on the GPU (cuda/kernels/chain.cuh).
#pragma once

#include "cuda/emit/chain_source.h"
#include "cuda/run/launch.h"
#include "model/plan.h"

namespace fuseline::cuda {

// MissingError: the GPU cannot hold all thread blocks of the kernel at the same time, and they wait
// for each other.
Launches prepare_chain(const LaunchContext& context, const ChainKernelSource& kernel,
                       const Kernel& chain);

}  // namespace fuseline::cuda
