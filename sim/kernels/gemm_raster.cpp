#include "sim/kernels/gemm_raster.h"

#include <algorithm>
#include <cmath>
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
// Thread blocks ask L2 for the same lines at the same time where no more than so many lie between
// them, and of the requests that could be saved this share is. Upright tiles without clusters at 8
// sizes, each in groups of 1, 2, 4, 8, 16 and 32 (fuseline gemm --measure on one H200, CUDA 13.0,
// 2026-11-28): 8.1 % error, root of the mean square, of 25.5 without; 62 other sizes in groups of 8
// (tiles-h200.csv and tiles-h200-unseen.csv in cuda/bench/results): 7.4 %.
constexpr double kNeighbours = 12;
constexpr double kMeeting = 0.65;
// Of clusters of two less is asked for at once: turned tiles at three of these sizes, within 9 %.
// Larger clusters showed nothing of it.
constexpr double kMeetingOfPairs = 0.3;

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
      const std::int64_t high = std::min(group, tiles_.across - first);
      const bool reversed = first / group % 2 != 0;
      for (std::int64_t begin = 0, end = 0; begin < high * tiles_.along; begin = end) {
        end = std::min(high * tiles_.along, begin + left);
        use_clusters(first, high, begin, end, reversed);
        left -= end - begin;
        if (left > 0) continue;
        left = tiles_.at_once;
        used_ += tiles_.at_once * tiles_.stored.value();
        wave_ = used_;
      }
    }
    return static_cast<double>(read_);
  }

 private:
  static constexpr std::int64_t kNever = -1;
  // What the clusters [begin, end) of a group use, which is `high` clusters across.
  void use_clusters(std::int64_t first, std::int64_t high, std::int64_t begin, std::int64_t end,
                    bool reversed) {
    for (std::int64_t i = begin; i < std::min(end, begin + high); ++i)
      use(across_[static_cast<std::size_t>(first + i % high)], tiles_.panel_across);
    for (std::int64_t step = begin / high; step <= (end - 1) / high; ++step)
      use(along_[static_cast<std::size_t>(reversed ? tiles_.along - 1 - step : step)],
          tiles_.panel_along);
  }

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
                    .blocks = tile.cluster(),
                    .panel_across = high * row_of_a,
                    .panel_along = wide * row_of_b,
                    .stored = Bytes(2 * high * wide)};
  if (tile.turned()) {
    std::swap(tiles.across, tiles.along);
    std::swap(tiles.panel_across, tiles.panel_along);
  }
  return tiles;
}

double reaching_share(const RasterTiles& tiles, std::int64_t group) {
  if (tiles.blocks > 2) return 1;
  const double window = kNeighbours / static_cast<double>(tiles.blocks);
  const auto height = static_cast<double>(std::min(group, tiles.across));
  const double across = std::min(height, window), along = 1 + (window - 1) / height;
  const double wanted =
      across * tiles.panel_across.as_double() + along * tiles.panel_along.as_double();
  const double asked = window * (tiles.panel_across + tiles.panel_along).as_double();
  const double meeting = tiles.blocks == 1 ? kMeeting : kMeetingOfPairs;
  return 1 - meeting * (1 - std::min(1.0, wanted / asked));
}

namespace {

// A group's cost, by which a higher one must be better than the best of the lower ones.
struct GroupCost {
  double of_read = 1, of_asked = 0;  // bytes from HBM, and of L2
  double least_gain = 0;
};
// HBM has about half of L2's rate, and what comes from it comes late: chosen among 2 to 8.
constexpr GroupCost kOfTime{.of_read = 4, .of_asked = 1};
// In a low group the tiles that share a panel run closer together, and drift parts them less.
constexpr GroupCost kOfReads{.least_gain = 0.05};

std::int64_t cheapest_group(const RasterTiles& tiles, Bytes l2, const GroupCost& cost) {
  const std::int64_t usual = std::min(kOwnRasterClusters, tiles.across);
  if (tiles.across * tiles.along <= tiles.at_once) return usual;
  RasterTiles some = tiles;
  some.across = std::min(tiles.across, kMostAcross);
  some.along = std::min(tiles.along, kMostAlong);
  const double asked = static_cast<double>(some.across * some.along) *
                       (some.panel_across + some.panel_along).as_double();
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
    const double bytes = std::hypot(cost.of_read * reads.of_group(group),
                                    cost.of_asked * asked * reaching_share(some, group));
    if (best > 0 && bytes >= (1 - cost.least_gain) * least) continue;
    least = bytes;
    best = group;
  }
  return best;
}

}  // namespace

std::int64_t fastest_group(const RasterTiles& tiles, Bytes l2) {
  return cheapest_group(tiles, l2, kOfTime);
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
  if (problem.ran_group && *problem.ran_group != kLeastReadGroup)
    return *problem.ran_group * blocks;
  const RasterTiles tiles = raster_tiles(
      tile, problem.m, problem.n, Bytes(problem.k * problem.a.matrix.element),
      Bytes(problem.k * problem.b.matrix.element), blocks_at_once(tile, gpu) / tile.cluster());
  const GroupCost& cost = problem.ran_group ? kOfReads : kOfTime;
  return cheapest_group(tiles, gpu.l2_capacity, cost) * blocks;
}

}  // namespace fuseline
