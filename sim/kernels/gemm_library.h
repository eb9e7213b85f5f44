// Which tile shape, cluster and split-K a vendor GEMM library, or our own mainloop, uses for a
// problem.
#pragma once

#include "sim/gpu/gpu.h"
#include "sim/kernels/gemm_problem.h"

namespace fuseline {

// The candidate, with its split-K, that quick_gemm_time finds fastest; ties go to the earlier
// candidate. A problem that fixes its tile keeps it.
GemmTile choose_tile(const GemmProblem& problem, const Gpu& gpu);

// Parts of K that tiles alone in the last round are cut into at most; tile.tail_parts is what the
// menu has. A part has more than a few steps of K, and its sums have a place.
std::int64_t most_tail_parts(const GemmProblem& problem, const GemmTile& tile, const Gpu& gpu);

// Of the tile cut along K where it would be alone in the last round: the number of parts that
// quick_gemm_time finds fastest, whether or not whole tiles are faster. 1: the tile is not cut.
std::int64_t fastest_tail_parts(const GemmProblem& problem, GemmTile tile, const Gpu& gpu);

}  // namespace fuseline
