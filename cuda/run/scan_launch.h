// Scans of a plan as launches.
#pragma once

#include "cuda/emit/scan_source.h"
#include "cuda/run/launch.h"

namespace fuseline::cuda {

// MissingError: the GPU's thread blocks have less shared memory than the kernel needs.
Launches prepare_scan(const LaunchContext& context, const ScanKernelSource& kernel,
                      const Program& program);

}  // namespace fuseline::cuda
