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

// launch = empty kernel + gemm.start_us, and less than that by up to gemm.hot_start_us, the more of
// the first operands L2 holds.
// time = launch + tables + Σ over waves of mainloop + epilogue, where
//   mainloop = p-norm of (tensor, fetch, HBM, convert), at least L2 and SMEM
//   tensor   = k steps × tile FLOPs / SM rate
//   convert  = k steps × elements of b × instructions / issue lanes, where b is stored in few bits
//   fetch    = k steps × tile panel bytes / fetch rate of one SM
//   HBM      = (bytes missed / busy^exponent + bytes written back) / sustained rate. Here busy is
//              at most 1: thread blocks × distinct bytes over all bytes that they load
//              × gemm.stream_gb_per_s / that rate
//   L2       = operand and epilogue bytes of the wave / L2 rate. In our own kernels operands count
//              1 + gemm.second_line_cost × share of their rows that lie in two lines of L2
//   epilogue = epilogue bytes of the fullest tile / rate of one SM. Clusters along K, whose blocks
//              make one tile each, add gemm.cluster_wave_us and the partial sums that they
//              exchange. Each of them leaves with its tile: the next wave's clusters start anew,
//              for gemm.cluster_start_us. Sums of parts of a tile have a rate of their own and take
//              gemm.parts_meet_us more. In our own kernels functions add elements × instructions /
//              (issue lanes × gemm.epilogue_issue_fraction), and of the bytes that the producer
//              fetches gemm.exposed_fetch_fraction counts: the others come while the mainloop still
//              runs. Threads of rows that the matrix does not have run the functions as well.
//   tables   = once, in our own kernels: 64 columns of the first tile after the other wait for
//              their tables out of HBM, stream.ramp_us each. Nothing multiplies meanwhile.
// Our own Hopper mainloop (own_mainloop.h) differs. All parts are in the p-norm, whose exponent is
// gemm.own_overlap_exponent. HBM and the longest of tensor, fetch and convert take at least what
// they do with gemm.overlap_exponent. And
//   tensor   = faster by 1 + gemm.idle_tensor_gain × the share of multiprocessors without a tile,
//              up to gemm.most_tensor_fraction of the datasheet rate: all of them together are not
//              as fast as a few
//   fetch    = k steps × requests that one thread block sends × 128 bytes / fetch rate of one SM;
//              a row between two lines of L2 takes two requests
//   SMEM     = the same of the requests that come in, also those that others of the cluster sent
//   ring     = k steps × (one step multiplied + gemm.stage_latency_us, or of tiles of 64 rows
//              gemm.stage_latency_in_turns_us, + fetched) / stages
//   L2       = of thread blocks without a cluster, most of what neighbours in a raster group ask
//              for together counts once (gemm_raster.h)
//   zeros    = for rows of a high tile that the matrix does not have, beside fetch and before it:
//              k steps × rows × row bytes / gemm.absent_bytes_per_cycle, where the tensor cores do
//              not hide them
//   epilogue = where it only stores and another tile follows, less than that: in tiles of 64 rows,
//              which two consumers make in turns, only what both together exceed the mainloop by;
//              in others not what the ring, which fills meanwhile, saves of the next tile's wait
// `clock_factor`: sustained over boost clock. HBM and launch do not depend on it.
GemmTime time_gemm(const GemmProblem& problem, const GemmTile& tile,
                   const std::vector<GemmWave>& waves, const Gpu& gpu, double clock_factor = 1.0);

// What each wave takes of that time.
struct WaveSpan {
  Seconds mainloop, epilogue;
};
std::vector<WaveSpan> wave_spans(const GemmProblem& problem, const GemmTile& tile,
                                 const std::vector<GemmWave>& waves, const Gpu& gpu);

// Time from the shapes alone: every wave alike, HBM bytes = each operand once. For choosing
// tiles.
Seconds quick_gemm_time(const GemmProblem& problem, const GemmTile& tile, const Gpu& gpu);

// What HBM moves while thread blocks do one k step of their tiles. 0: not known of this kernel.
Bytes hbm_bytes_of_step(const GemmProblem& problem, const GemmTile& tile, const Gpu& gpu);

// The launch that sums the partials of a split-K GEMM. `l2`: its bytes through L2. `hbm`: those of
// them that HBM moves.
Seconds reduction_time(Bytes l2, Bytes hbm, const Gpu& gpu);

// Thread blocks of this tile that are resident at once, tile.blocks_per_sm on each SM. Clusters of
// four or more do not fill every group of SMs.
std::int64_t blocks_at_once(const GemmTile& tile, const Gpu& gpu);

}  // namespace fuseline
