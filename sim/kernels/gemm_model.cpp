#include "sim/kernels/gemm_model.h"

#include <utility>

#include "sim/kernels/gemm_library.h"
#include "sim/kernels/gemm_raster.h"
#include "sim/kernels/gemm_schedule.h"
#include "sim/kernels/gemm_time.h"

namespace fuseline {

GemmWalk gemm_walk(GemmProblem problem, const Gpu& gpu) {
  const GemmTile tile = choose_tile(problem, gpu);
  const std::int64_t group = raster_group_of(problem, tile, gpu);
  const Bytes of_step = hbm_bytes_of_step(problem, tile, gpu);
  return {std::move(problem),       tile,   blocks_at_once(tile, gpu), group,
          gpu.constants.gemm.drift, of_step};
}

GemmEstimate estimate_gemm(const GemmWalk& gemm, WalkTraffic traffic, const Gpu& gpu) {
  const GemmProblem& problem = gemm.problem;
  GemmEstimate estimate;
  estimate.tile = gemm.tile;
  estimate.flops = checked_product<Flops>(2, problem.m, problem.n, problem.total_depth());
  catch_up(traffic, gemm.hbm_of_step);
  estimate.waves = std::move(traffic.waves);
  estimate.time = time_gemm(problem, gemm.tile, estimate.waves, gpu);
  for (const GemmWave& wave : estimate.waves) {
    estimate.l2 += wave.operands + wave.epilogue;
    estimate.hbm.read += wave.hbm.read;
    estimate.hbm.write += wave.hbm.write;
  }
  const GemmRequested requested = requested_bytes(problem, gemm.tile);
  estimate.smem = (requested.a + requested.b + requested.scales) * 2;
  if (gemm.tile.split_k > 1) {
    estimate.reduction = {reduction_time(traffic.l2, traffic.hbm.read + traffic.hbm.write, gpu),
                          traffic.hbm, traffic.l2};
  }
  return estimate;
}

GemmEstimate simulate_gemm(const GemmProblem& problem, const Gpu& gpu, L2Cache& cache) {
  const GemmWalk gemm = gemm_walk(problem, gpu);
  return estimate_gemm(gemm, walk(gemm, cache), gpu);
}

}  // namespace fuseline
