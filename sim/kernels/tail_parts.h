// Tiles of a last round that are cut along K, as our own mainloop runs them
// (cuda/kernels/sm90/tile_walk.cuh): what their parts hand to each other.
#pragma once

#include "sim/kernels/gemm_problem.h"
#include "sim/kernels/gemm_schedule.h"
#include "sim/memory/l2_cache.h"

namespace fuseline {

// Whether all thread blocks that have a part of a tile add it up together, each a share of the tile
// (cuda/kernels/sm90/parted_tile.cuh). Where not, the one that has the last part adds up all.
bool adds_together(const GemmProblem& problem);

// Whether a unit is a part of a tile, and one whose sums another part adds: the last part of a tile
// has its epilogue.
bool is_tail_part(const GemmProblem& problem, const GemmTile& tile, const GemmUnit& unit);
bool gives_sums_away(const GemmProblem& problem, const GemmTile& tile, const GemmUnit& unit);

// Sums in fp32 that a part writes, or that the last part reads: both, where all parts add up
// together. All accumulators of a thread block move, also those beyond the matrix.
Bytes tail_sum_bytes(const GemmProblem& problem, const GemmTile& tile, const GemmUnit& unit);

// The same through the L2.
void move_tail_sums(const GemmProblem& problem, const GemmTile& tile, const GemmUnit& unit,
                    L2Cache& cache);

}  // namespace fuseline
