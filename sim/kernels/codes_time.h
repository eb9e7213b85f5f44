// Time of our own kernels for products whose weights are codes (cuda/kernels/gemm_codes.cuh).
#pragma once

#include <vector>

#include "sim/gpu/gpu.h"
#include "sim/kernels/gemm_problem.h"
#include "sim/kernels/gemm_time.h"

namespace fuseline {

// What the fullest multiprocessor of a wave has to do: counted in the kernel's source.
struct CodesWork {
  double copies = 0;       // of 16 bytes of A into shared memory
  double scale_loads = 0;  // of a warp
  double rows = 0;         // of tiles, whose sums are added up and stored
  double waits = 0;        // for loads, one after the other
};

// `blocks`: thread blocks of the wave.
CodesWork codes_work(const GemmProblem& problem, const GemmTile& tile, std::int64_t blocks,
                     const Gpu& gpu);

// time = launch + clusters along K + Σ over waves of work + bytes, where
//   launch  = empty kernel + gemm.start_us, and less by up to gemm.hot_start_us, the more L2 holds
//   work    = copies × codes.copy_cycles + scale loads × codes.scale_cycles
//             + rows × codes.row_cycles + waits × codes.wait_cycles
//   bytes   = bytes missed and written back / sustained HBM rate
// Work and bytes add up, because a warp waits for its codes before it multiplies them. The
// products, and turning codes into numbers, did not show in the measurements, so the time has no
// term for them. Hopper's kernel for few rows: columns_time.h.
GemmTime time_codes(const GemmProblem& problem, const GemmTile& tile,
                    const std::vector<GemmWave>& waves, const Gpu& gpu, double clock_factor);

// The same from the shapes alone, HBM bytes = each operand once.
Seconds quick_codes_time(const GemmProblem& problem, const GemmTile& tile, const Gpu& gpu);

}  // namespace fuseline
