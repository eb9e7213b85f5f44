// A GEMM program ready to launch: its function, its grid and the bytes of its parameters.
#pragma once

#include "cuda/emit/kernel_source.h"
#include "cuda/run/launch.h"

namespace fuseline::cuda {

// One launch; another comes ahead of it for each operand whose rows lie apart in runs that tiles
// cross (rows_apart.h). InternalError: an operand's address or rows are not multiples of 16 bytes
// where the copy engine moves it.
Launches prepare_gemm(const LaunchContext& context, const GemmKernelSource& kernel,
                      const Program& program);

}  // namespace fuseline::cuda
