#include "sim/kernels/own_mainloop.h"

#include <algorithm>

#include "sim/kernels/gemm_raster.h"
#include "sim/kernels/gemm_schedule.h"
#include "sim/kernels/gemm_time.h"
#include "sim/kernels/operand_rows.h"

namespace fuseline {
namespace {

constexpr std::int64_t kRequestBytes = 128;
constexpr std::int64_t kConsumerStoreBytes = 16 * 1024;  // one buffer of 64 rows for each consumer
constexpr std::int64_t kBarrierBytes = 256;
constexpr std::int64_t kDeepestRing = 12;
constexpr std::int64_t kShallowRing = 4;  // for which a turned tile gives up second store buffers

double requests(const GemmProblem& problem, const GemmOperand& operand, std::int64_t rows,
                std::int64_t depth) {
  return static_cast<double>(rows * depth * operand.matrix.element) / kRequestBytes *
         (1 + rows_between_lines(problem, operand));
}

}  // namespace

bool is_own_hopper(const GemmProblem& problem, const Gpu& gpu) {
  return !problem.library && has_feature(gpu, Feature::bulk_copy);
}

bool takes_turns(const GemmTile& tile) {
  constexpr std::int64_t kLowTileRows = 64;
  return tile.m == kLowTileRows && !tile.turned() && tile.cluster_k == 1;
}

StepRequests step_requests(const GemmProblem& problem, const GemmTile& tile) {
  const std::int64_t rows = own_loaded_rows(tile.m, problem.typical_rows());
  const double a = requests(problem, problem.a, rows, tile.k);
  const double b = requests(problem, problem.b, tile.n, tile.k);
  return {.sent = a / static_cast<double>(tile.cluster_n) + b / static_cast<double>(tile.cluster_m),
          .received = a + b};
}

double reaching_share(const GemmProblem& problem, const GemmTile& tile, const Gpu& gpu) {
  if (tile.cluster_k > 1 ||
      (tile.cluster() > 1 && (takes_turns(tile) || problem.activation.quantised())) ||
      rows_between_lines(problem, problem.a) > 0 || rows_between_lines(problem, problem.b) > 0)
    return 1;
  const std::int64_t rows = own_loaded_rows(tile.m, problem.typical_rows());
  RasterTiles tiles = raster_tiles(tile, problem.typical_rows(), problem.n,
                                   Bytes(problem.typical_depth() * problem.a.matrix.element),
                                   Bytes(problem.typical_depth() * problem.b.matrix.element), 1);
  (tile.turned() ? tiles.panel_along : tiles.panel_across) =
      Bytes(rows * problem.typical_depth() * problem.a.matrix.element);
  // Pairs share about as much in all groups, which take time to compare.
  const std::int64_t group =
      tile.cluster() == 1 ? raster_group_of(problem, tile, gpu) : kOwnRasterClusters;
  return reaching_share(tiles, group);
}

std::int64_t ring_stages(const GemmProblem& problem, const GemmTile& tile, const Gpu& gpu) {
  const std::int64_t rows = own_loaded_rows(tile.m, problem.typical_rows());
  const std::int64_t stage =
      tile.k * rows * problem.a.matrix.element + tile.k * tile.n * problem.b.matrix.element;
  const std::int64_t sums = (tile.cluster_k - 1) * tile.m * tile.n * 4;
  const std::int64_t room = gpu.smem_per_block_max.value() - kBarrierBytes - sums -
                            (tile.turned() ? column_scratch(problem.needs) : 0);
  std::int64_t stages = std::min(kDeepestRing, (room - 2 * kConsumerStoreBytes) / stage);
  if (tile.turned() && stages < kShallowRing &&
      (room - kConsumerStoreBytes) / stage >= kShallowRing)
    stages = kShallowRing;
  if (takes_turns(tile)) stages = stages / 2 * 2;
  return std::max<std::int64_t>(2, stages);
}

double busy_share(const GemmProblem& problem, const GemmTile& tile, const Gpu& gpu) {
  const std::int64_t m = problem.typical_rows();
  const std::int64_t products = problem.products();
  const std::int64_t units = ceil_div(m, tile.m * tile.cluster_m) *
                             ceil_div(problem.n, tile.n * tile.cluster_n) * products;
  const std::int64_t at_once = blocks_at_once(tile, gpu) / tile.cluster();
  const std::int64_t rest = units % at_once;
  // Where the tiles of the last round are cut, several clusters make each.
  const double last = rest == 0              ? 0.0
                      : tile.tail_parts == 1 ? 1.0
                                             : static_cast<double>(rest * tile.tail_parts) /
                                                   static_cast<double>(at_once);
  const double rounds = std::max(1.0, static_cast<double>(units / at_once) + last);
  const std::int64_t blocks =
      ceil_div(m, tile.m) * ceil_div(problem.n, tile.n) * products * tile.cluster_k;
  return std::min(1.0, static_cast<double>(blocks) / (rounds * static_cast<double>(gpu.sm_count)));
}

}  // namespace fuseline
