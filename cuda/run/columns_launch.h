// The launch of Hopper's kernel for weights in codes and few rows (kernels/sm90/codes_columns.cuh).
#pragma once

#include "cuda/emit/kernel_source.h"
#include "cuda/run/launch.h"

namespace fuseline::cuda {

// The kernel's config must have `columns`. InternalError: rows of A, or of the scales, do not start
// at multiples of 16 bytes.
Launches prepare_columns(const LaunchContext& context, const GemmKernelSource& kernel,
                         const Program& program);

}  // namespace fuseline::cuda
