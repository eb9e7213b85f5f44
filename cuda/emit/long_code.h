// Whether an epilogue's code is so long that the slabs of a tile share one copy of it
// (cuda/kernels/sm90/layout.cuh).
#pragma once

#include "model/program.h"
#include "sim/kernels/epilogue_needs.h"

namespace fuseline::cuda {

// Functions and tables make code worth sharing, as sums down columns do. A pair of SwiGLU does not:
// its tile has 42 KB unrolled, and it runs as fast as its other limits let it.
bool has_long_code(const Program& program, const EpilogueNeeds& needs);

}  // namespace fuseline::cuda
