// Which tile shape, cluster and split-K a vendor GEMM library, or our own mainloop, uses for a
// problem.
#pragma once

#include "sim/gpu/gpu.h"
#include "sim/kernels/gemm_problem.h"

namespace fuseline {

// The candidate, with its split-K, that quick_gemm_time finds fastest; ties go to the earlier
// candidate. A problem that fixes its tile keeps it.
GemmTile choose_tile(const GemmProblem& problem, const Gpu& gpu);

}  // namespace fuseline
