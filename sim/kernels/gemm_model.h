// The hierarchy model of one GEMM kernel: tile choice, schedule, traffic through the shared L2,
// time.
#pragma once

#include <optional>
#include <vector>

#include "base/units.h"
#include "sim/gpu/gpu.h"
#include "sim/kernels/gemm_problem.h"
#include "sim/kernels/gemm_time.h"
#include "sim/kernels/gemm_traffic.h"
#include "sim/kernels/kernel_estimate.h"
#include "sim/memory/l2_cache.h"

namespace fuseline {

// The second launch of a split-K GEMM: sums fp32 partials, runs the epilogue, stores the output.
struct SplitKReduction {
  Seconds time;
  HbmTraffic hbm;
  Bytes l2;
};

struct GemmEstimate {
  GemmTile tile;
  Flops flops;  // 2 × batch × m × n × k
  std::vector<GemmWave> waves;
  GemmTime time;   // at the boost clock; time_gemm gives it at another
  HbmTraffic hbm;  // of the GEMM kernel: what it misses, and what is written back while it runs
  Bytes l2;        // operands (multicast counted once) and epilogue
  Bytes smem;      // operand panels written to and read from shared memory
  std::optional<SplitKReduction> reduction;
};

// How the GEMM runs on this GPU, with a tile chosen for it.
GemmWalk gemm_walk(GemmProblem problem, const Gpu& gpu);
// What it takes, given what it moves.
GemmEstimate estimate_gemm(const GemmWalk& gemm, WalkTraffic traffic, const Gpu& gpu);

// Runs the GEMM through the cache, which keeps what the kernels before left and is left as this one
// leaves it. Traffic in the cache that was not collected yet is not counted here: take it first.
GemmEstimate simulate_gemm(const GemmProblem& problem, const Gpu& gpu, L2Cache& cache);

}  // namespace fuseline
