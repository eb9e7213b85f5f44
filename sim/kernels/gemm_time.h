// Time of one GEMM kernel from its waves.
#pragma once

#include <cstdint>
#include <vector>

#include "base/units.h"
#include "sim/gpu/gpu.h"
#include "sim/kernels/gemm_problem.h"
#include "sim/kernels/gemm_traffic.h"
#include "sim/kernels/kernel_estimate.h"

namespace fuseline {

// The parts overlap inside a wave, so they do not add up to `time`.
struct GemmTime {
  Seconds time;
  Seconds tensor, l2, hbm, smem, epilogue;  // each as if it alone set the time of every wave
  Seconds launch;
  Bound bound = Bound::tensor;  // the part that set most of the time
};

// launch = empty kernel + gemm.start_us, less of gemm.hot_start_us as L2 holds the first operands.
// time = launch + Σ over waves of mainloop + epilogue, where
//   mainloop = p-norm of (tensor, fetch, HBM, convert), at least L2 and SMEM
//   tensor   = k steps × tile FLOPs / SM rate
//   convert  = k steps × elements of b × instructions / issue lanes, where b is stored in few bits
//   fetch    = k steps × tile panel bytes / fetch rate of one SM
//   HBM      = (bytes missed / busy^exponent + bytes written back) / sustained rate, where busy is
//              the thread blocks' distinct share of what they load × gemm.stream_gb_per_s / that
//              rate, at most 1
//   L2       = operand and epilogue bytes of the wave / L2 rate
//   epilogue = epilogue bytes of the fullest tile / rate of one SM; with clusters along K, whose
//   blocks make
//              one tile each, also their start and end and the partial sums that they exchange.
//              Of our own kernels also what exponentials of its elements issue.
// `clock_factor`: sustained over boost clock; all but HBM and launch slow down with it.
GemmTime time_gemm(const GemmProblem& problem, const GemmTile& tile,
                   const std::vector<GemmWave>& waves, const Gpu& gpu, double clock_factor = 1.0);

// What each wave takes of that time.
struct WaveSpan {
  Seconds mainloop, epilogue;
};
std::vector<WaveSpan> wave_spans(const GemmProblem& problem, const GemmTile& tile,
                                 const std::vector<GemmWave>& waves, const Gpu& gpu);

// Whether the library must fetch element by element, which takes another kernel: rows of an operand
// or of the result that are no multiple of the alignment rule out bulk copies and vector loads. A
// single row is contiguous. Batched GEMMs, and attention's, whose sizes are tokens, are taken as
// padded.
bool fetches_by_elements(const GemmProblem& problem, const Gpu& gpu);

// The same from the shapes alone: every wave alike, HBM bytes = each operand once. For choosing
// tiles.
Seconds quick_gemm_time(const GemmProblem& problem, const GemmTile& tile, const Gpu& gpu);

// The launch that sums the partials of a split-K GEMM: its bytes through L2, and those of them from
// or to HBM.
Seconds reduction_time(Bytes l2, Bytes hbm, const Gpu& gpu);

// Thread blocks of this tile that are resident at once, tile.blocks_per_sm on each SM. Clusters of
// four or more do not fill every group of SMs.
std::int64_t blocks_at_once(const GemmTile& tile, const Gpu& gpu);

}  // namespace fuseline
