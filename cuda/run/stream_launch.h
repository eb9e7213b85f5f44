// A stream or row program ready to launch: its function, its grid and the bytes of its parameters.
#pragma once

#include "cuda/emit/stream_source.h"
#include "cuda/run/launch.h"

namespace fuseline::cuda {

Launches prepare_stream(const LaunchContext& context, const StreamKernelSource& kernel,
                        const Program& program);

}  // namespace fuseline::cuda
