// An attention program ready to launch: its kernels' grids, parameters and workspaces.
#pragma once

#include <vector>

#include "cuda/emit/attention_source.h"
#include "cuda/run/launch.h"

namespace fuseline::cuda {

// One launch for each of `kernels` (attention_sources of the same program), in order. What RoPE
// makes of Q and K for attention alone goes through a workspace in GPU memory, rounded to the
// operands' type. InternalError: rows do not start at multiples of 16 bytes.
Launches prepare_attention(const LaunchContext& context,
                           const std::vector<AttentionKernelSource>& kernels,
                           const Program& program);

}  // namespace fuseline::cuda
