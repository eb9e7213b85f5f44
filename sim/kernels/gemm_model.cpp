#include "sim/kernels/gemm_model.h"

#include "sim/kernels/gemm_library.h"
#include "sim/kernels/gemm_schedule.h"

namespace fuseline {
namespace {

SplitKReduction reduce_partials(const GemmProblem& problem, const GemmTile& tile, const Gpu& gpu,
                                L2Cache& cache) {
  // Streams every partial and the epilogue's tensors once, row block by row block.
  const CachedMatrix workspace = partials(problem, tile);
  const std::int64_t stride = workspace.rows / (problem.batch * tile.split_k);
  for (std::int64_t base = 0; base < workspace.rows; base += stride) {
    cache.read(workspace, base, base + problem.m, 0, problem.n);
  }
  SplitKReduction reduction;
  reduction.l2 = checked_product<Bytes>(problem.m, problem.n, problem.batch, tile.split_k, 4);
  reduction.l2 += run_whole_epilogue(problem, cache);
  cache.discard(problem.workspace_tensor);
  reduction.hbm = cache.take_traffic();
  reduction.time = reduction_time(reduction.l2, reduction.hbm.read + reduction.hbm.write, gpu);
  return reduction;
}

}  // namespace

GemmEstimate simulate_gemm(const GemmProblem& problem, const Gpu& gpu, L2Cache& cache) {
  GemmEstimate estimate;
  estimate.tile = choose_tile(problem, gpu);
  const GemmTile& tile = estimate.tile;
  estimate.flops = checked_product<Flops>(2, problem.batch, problem.m, problem.n, problem.k);
  const GemmSchedule schedule = schedule_of(problem, tile, gpu);
  estimate.waves = walk_gemm(problem, tile, schedule, cache);
  estimate.time = time_gemm(problem, tile, estimate.waves, gpu);
  for (const GemmWave& wave : estimate.waves) {
    estimate.l2 += wave.operands + wave.epilogue;
    estimate.hbm.read += wave.hbm.read;
    estimate.hbm.write += wave.hbm.write;
  }
  const GemmRequested requested = requested_bytes(problem, tile);
  estimate.smem = (requested.a + requested.b) * 2;
  if (tile.split_k > 1) {
    estimate.reduction = reduce_partials(problem, tile, gpu, cache);
  }
  return estimate;
}

}  // namespace fuseline
