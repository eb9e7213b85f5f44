// A compiled source's kernel, and the shared memory that it says it needs.
#pragma once

#include <string>

#include "cuda/run/launch.h"

namespace fuseline::cuda {

struct KernelFunction {
  Function function;
  unsigned shared_bytes = 0;
};

// The source has a constant FUNCTION_shared_bytes beside the kernel. MissingError: the GPU's thread
// blocks have less.
KernelFunction load_function(const LaunchContext& context, const Source& source,
                             const std::string& function);

}  // namespace fuseline::cuda
