// Bytes of one GEMM kernel at every memory level, wave by wave, through the shared L2.
#pragma once

#include <cstdint>
#include <vector>

#include "base/units.h"
#include "sim/kernels/gemm_problem.h"
#include "sim/kernels/gemm_schedule.h"
#include "sim/kernels/gemm_wave.h"
#include "sim/kernels/walk_key.h"
#include "sim/kernels/walk_memo.h"
#include "sim/memory/l2_cache.h"

namespace fuseline {

// Runs the schedule through the cache. The clusters of a wave advance through k together, so each
// distinct 64 × 64 chunk of an operand is asked for once per wave; epilogues follow at the wave's
// end, and their dirty bytes stay in the cache for the kernels after this one. `drift`: every other
// cluster falls behind, by so many elements of k after one and by the root of the way times as many
// later on, and asks for its chunks late.
// `hbm_of_step`: who is ahead waits for HBM and is caught up with where HBM moves no more than this
// while a k step lasts. Of its operands, scales apart, a wave then misses at most what is distinct
// in it. 0: nothing is known.
std::vector<GemmWave> walk_gemm(const GemmProblem& problem, const GemmTile& tile,
                                const GemmSchedule& schedule, L2Cache& cache, double drift = 0,
                                Bytes hbm_of_step = {});

// All that decides what a GEMM touches, its reduction included, and in which order.
struct GemmWalk {
  GemmProblem problem;
  GemmTile tile;
  std::int64_t blocks_at_once = 1;  // thread blocks
  std::int64_t raster_group = 1;    // tiles
  double drift = 0;                 // elements of k that half of the clusters are behind after one
  Bytes hbm_of_step = {};           // that HBM moves while a k step lasts
};
GemmSchedule schedule_of(const GemmWalk& gemm);  // its units in their order
// Whatever the GPU's HBM does, so that GPUs of equal L2 share it: what comes of `hbm_of_step` is up
// to catch_up().
WalkTraffic walk(const GemmWalk& gemm, L2Cache& cache);
// Takes from each wave what HBM has no time for, as walk_gemm() says of `hbm_of_step`.
void catch_up(WalkTraffic& traffic, Bytes hbm_of_step);
void describe(const GemmWalk& gemm, WalkKey& key);
// Some of its waves, which begin with what the waves before them left, and behind the last one its
// reduction. Only of a GEMM that is_walked_in_full(): no wave takes the traffic of others.
WalkTraffic walk(const GemmWalk& gemm, const GemmSchedule& schedule, UnitRange waves,
                 L2Cache& cache);
bool is_walked_in_full(const GemmWalk& gemm, const GemmSchedule& schedule);

// The workspace of a split-K GEMM: fp32 [m, n] per batch and split, rows rounded up to whole
// chunks.
CachedMatrix partials(const GemmProblem& problem, const GemmTile& tile);

// Bytes that the kernel's loads and stores ask for before any cache: each tile loads its operand
// panels (clipped at the edges; multicast not deducted) and its epilogue streams.
struct GemmRequested {
  Bytes a;
  Bytes b;
  Bytes scales;                 // beside b
  std::vector<Bytes> epilogue;  // as problem.epilogue
};
GemmRequested requested_bytes(const GemmProblem& problem, const GemmTile& tile);

}  // namespace fuseline
