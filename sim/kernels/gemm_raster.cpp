#include "sim/kernels/gemm_raster.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "sim/gpu/gpu.h"
#include "sim/kernels/gemm_library.h"
#include "sim/kernels/gemm_problem.h"
#include "sim/kernels/gemm_schedule.h"
#include "sim/kernels/gemm_time.h"

namespace fuseline {

namespace {

// Thread blocks drift apart, so that about half of L2 serves the next wave. With this, the walks of
// all own products of 18 blocks (h200, h100-sxm) read 1 to 2 % more than with the best of nine
// groups for each, and 10 to 13 % less than with groups of eight; a share of 0.3 gives the same.
constexpr std::int64_t kL2Share = 2;  // one in so many
constexpr std::int64_t kMostClusters = 32;
// Products of more clusters repeat themselves.
constexpr std::int64_t kMostAcross = 64, kMostAlong = 128;
// A higher group must read so much less: in a low one the tiles that share a panel run closer
// together, and drift parts them less. Of shares between 0.02 and 0.15 all do as well.
constexpr double kLeastGain = 0.05;

// Bytes that all waves read from HBM. The thread blocks of a wave walk through K together, so that
// a panel comes once for all of them. A later wave finds it if all that was used since the wave
// before began fits L2.
class WaveReads {
 public:
  WaveReads(const RasterTiles& tiles, std::int64_t l2) : tiles_(tiles), l2_(l2) {}

  double of_group(std::int64_t group) {
    across_.assign(static_cast<std::size_t>(tiles_.across), kNever);
    along_.assign(static_cast<std::size_t>(tiles_.along), kNever);
    used_ = read_ = wave_ = 0;
    std::int64_t left = tiles_.at_once;
    for (std::int64_t first = 0; first < tiles_.across; first += group) {
      const std::int64_t last = std::min(tiles_.across, first + group);
      const bool reversed = first / group % 2 != 0;
      for (std::int64_t step = 0; step < tiles_.along; ++step) {
        const std::int64_t j = reversed ? tiles_.along - 1 - step : step;
        for (std::int64_t i = first; i < last; ++i) {
          use(across_[static_cast<std::size_t>(i)], tiles_.panel_across);
          use(along_[static_cast<std::size_t>(j)], tiles_.panel_along);
          if (--left > 0) continue;
          left = tiles_.at_once;
          used_ += tiles_.at_once * tiles_.stored.value();
          wave_ = used_;
        }
      }
    }
    return static_cast<double>(read_);
  }

 private:
  static constexpr std::int64_t kNever = -1;
  // `last`: what had been used when the wave began that used the panel last.
  void use(std::int64_t& last, Bytes panel) {
    if (last == wave_) return;
    if (last == kNever || wave_ - last > l2_) read_ += panel.value();
    last = wave_;
    used_ += panel.value();
  }

  const RasterTiles& tiles_;
  std::int64_t l2_;
  std::vector<std::int64_t> across_, along_;
  std::int64_t used_ = 0;  // bytes, by all waves so far
  std::int64_t wave_ = 0;  // the same when this wave began
  std::int64_t read_ = 0;
};

}  // namespace

RasterTiles raster_tiles(const GemmTile& tile, std::int64_t m, std::int64_t n, Bytes row_of_a,
                         Bytes row_of_b, std::int64_t at_once) {
  const std::int64_t high = tile.m * tile.cluster_m, wide = tile.n * tile.cluster_n;
  RasterTiles tiles{.across = ceil_div(m, high),
                    .along = ceil_div(n, wide),
                    .at_once = at_once,
                    .panel_across = high * row_of_a,
                    .panel_along = wide * row_of_b,
                    .stored = Bytes(2 * high * wide)};
  if (tile.turned()) {
    std::swap(tiles.across, tiles.along);
    std::swap(tiles.panel_across, tiles.panel_along);
  }
  return tiles;
}

std::int64_t least_read_group(const RasterTiles& tiles, Bytes l2) {
  const std::int64_t usual = std::min(kOwnRasterClusters, tiles.across);
  if (tiles.across * tiles.along <= tiles.at_once) return usual;
  RasterTiles some = tiles;
  some.across = std::min(tiles.across, kMostAcross);
  some.along = std::min(tiles.along, kMostAlong);
  WaveReads reads(some, l2.value() / kL2Share);
  // Groups of equal height, low ones first: a last one of a single row would read the other operand
  // once more.
  std::int64_t best = 0, before = 0;
  double least = 0;
  for (std::int64_t groups = some.across; groups > 0; --groups) {
    const std::int64_t group = ceil_div(some.across, groups);
    if (group == before) continue;
    if (group > kMostClusters) break;
    before = group;
    const double bytes = reads.of_group(group);
    if (best > 0 && bytes >= (1 - kLeastGain) * least) continue;
    least = bytes;
    best = group;
  }
  return best;
}

std::int64_t raster_group_of(const GemmProblem& problem, const GemmTile& tile, const Gpu& gpu) {
  const std::int64_t usual =
      raster_group(problem.library, tile, gpu.constants.gemm.raster_group_tiles);
  // Persistent thread blocks of one product.
  if (problem.library || tile.dequantises || tile.cluster_k > 1 ||
      !has_feature(gpu, Feature::bulk_copy) || problem.products() > 1 || !problem.groups.empty() ||
      !problem.depths.empty())
    return usual;
  const std::int64_t blocks = std::max(tile.cluster_m, tile.cluster_n);
  if (problem.ran_group) return *problem.ran_group * blocks;
  const RasterTiles tiles = raster_tiles(
      tile, problem.m, problem.n, Bytes(problem.k * problem.a.matrix.element),
      Bytes(problem.k * problem.b.matrix.element), blocks_at_once(tile, gpu) / tile.cluster());
  return least_read_group(tiles, gpu.l2_capacity) * blocks;
}

}  // namespace fuseline
