// The order in which thread blocks take parts of tiles: that of the kernel, on the CPU.
#include "cuda/kernels/sm90/tile_walk.cuh"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

#include "cuda/kernels/raster.cuh"
#include "sim/kernels/gemm_schedule.h"

namespace fuseline {
namespace {

struct Case {
  int tiles, steps, clusters, parts;
};

Case random_case(std::mt19937& random) {
  const auto pick = [&random](int low, int high) {
    return low + static_cast<int>(random() % static_cast<unsigned>(high - low + 1));
  };
  const int steps = pick(1, 40);
  return {pick(1, 300), steps, pick(1, 132), pick(1, std::min(8, steps))};
}

TEST(TileWalk, TakesEveryStepOfEveryTileOnce) {
  std::mt19937 random(5);
  for (int trial = 0; trial < 300; ++trial) {
    const Case c = random_case(random);
    std::vector<int> count(static_cast<std::size_t>(c.tiles * c.steps), 0);
    for (int cluster = 0; cluster < c.clusters; ++cluster) {
      gpu::TileWalk<true> walk({c.tiles, c.steps, c.clusters, c.parts}, cluster, c.clusters);
      for (gpu::TilePart p = walk.next(); p.tile >= 0; p = walk.next()) {
        ASSERT_GT(p.steps, 0);
        for (int k = 0; k < p.steps; ++k)
          ++count[static_cast<std::size_t>(p.tile * c.steps + p.first + k)];
      }
    }
    for (const int times : count) ASSERT_EQ(times, 1) << "trial " << trial;
  }
}

// The last part of a tile waits for the others. Each cluster takes its parts in the order of their
// numbers, so the unfinished part of the lowest number waits for nobody.
TEST(TileWalk, WaitsForLowerNumbersOnlyAndTakesNumbersInOrder) {
  std::mt19937 random(6);
  for (int trial = 0; trial < 300; ++trial) {
    const Case c = random_case(random);
    const gpu::SharedTiles all(c.tiles, c.steps, c.clusters, c.parts);
    for (int cluster = 0; cluster < c.clusters; ++cluster) {
      gpu::TileWalk<true> walk(all, cluster, c.clusters);
      int before = -1;
      bool whole = false;
      for (gpu::TilePart p = walk.next(); p.tile >= 0; p = walk.next()) {
        if (p.steps == c.steps && p.tile >= all.rest) {
          whole = true;
          continue;
        }
        ASSERT_FALSE(whole) << "a part comes behind a whole tile";
        ASSERT_GT(p.number, before);
        before = p.number;
        // Numbers of a tile: p.tile, p.tile + rest, ...
        ASSERT_EQ(p.number % all.rest, p.tile);
        ASSERT_EQ(p.first + p.steps == c.steps, p.number / all.rest == all.parts - 1);
      }
    }
  }
}

// Where all that have a part add up together, each piece of the tile is one part's to add up.
TEST(TileWalk, EveryPieceOfATileIsInOneShare) {
  for (const int pieces : {10, 16, 48, 64, 80})
    for (int parts = 1; parts <= 40; ++parts) {
      int next = 0, most = 0;
      for (int slice = 0; slice < parts; ++slice) {
        const gpu::PieceRange share = gpu::share_of(slice, parts, pieces);
        ASSERT_EQ(share.first, next) << pieces << " pieces, " << parts << " parts";
        ASSERT_GE(share.last, share.first);
        most = std::max(most, share.last - share.first);
        next = share.last;
      }
      ASSERT_EQ(next, pieces);
      EXPECT_LE(most, (pieces + parts - 1) / parts) << "no share is larger than it must be";
    }
}

TEST(TileWalk, IsTheSimulatorsOrder) {
  std::mt19937 random(7);
  int shared = 0;
  for (int trial = 0; trial < 200; ++trial) {
    // Given a product and a tile of our mainloop,
    const std::int64_t m = 1 + static_cast<std::int64_t>(random() % 4000),
                       n = 8 * (1 + static_cast<std::int64_t>(random() % 800)),
                       k = 8 * (1 + static_cast<std::int64_t>(random() % 800));
    GemmTile tile{.m = 128, .n = random() % 2 == 0 ? 256 : 128, .k = 64};
    tile.cluster_m = 1 + static_cast<std::int64_t>(random() % 2);
    const std::int64_t steps = (k + 63) / 64;
    tile.tail_parts = std::min<std::int64_t>(steps, 1 + static_cast<std::int64_t>(random() % 20));
    const std::int64_t clusters = 132 / tile.cluster_m;
    // when the simulator schedules it,
    const GemmSchedule schedule =
        schedule_gemm(m, n, k, 1, tile, 132, raster_group(false, tile, 0));
    // then unit i is what cluster i mod C of the kernel takes in its turn.
    const int tiles_m =
        static_cast<int>((m + tile.m * tile.cluster_m - 1) / (tile.m * tile.cluster_m));
    const int tiles_n = static_cast<int>((n + tile.n - 1) / tile.n);
    const gpu::SharedTiles all(tiles_m * tiles_n, static_cast<int>(steps),
                               static_cast<int>(clusters), static_cast<int>(tile.tail_parts));
    const std::size_t parts = static_cast<std::size_t>(all.rest * all.parts);
    if (parts > 0) ++shared;
    for (int cluster = 0; cluster < clusters; ++cluster) {
      gpu::TileWalk<true> walk(all, cluster, static_cast<int>(clusters));
      std::size_t number = static_cast<std::size_t>(cluster);
      std::size_t whole = parts + static_cast<std::size_t>(cluster);
      for (gpu::TilePart p = walk.next(); p.tile >= 0; p = walk.next()) {
        std::size_t& at = number < parts ? number : whole;
        ASSERT_LT(at, schedule.units.size());
        const GemmUnit& unit = schedule.units[at];
        at += static_cast<std::size_t>(clusters);
        const gpu::TilePlace place =
            gpu::grouped_tile(p.tile, tiles_m, tiles_n, static_cast<int>(kOwnRasterClusters));
        ASSERT_EQ(unit.m_begin, place.m * tile.m * tile.cluster_m);
        ASSERT_EQ(unit.n_begin, place.n * tile.n);
        ASSERT_EQ(unit.k_begin, 64 * p.first);
        ASSERT_EQ(unit.k_end, std::min<std::int64_t>(k, 64 * (p.first + p.steps)));
      }
    }
  }
  EXPECT_GT(shared, 50);
}

// Turned tiles: what the kernel walks down are columns of the result.
TEST(TileWalk, OfTurnedTilesIsTheSimulatorsOrder) {
  std::mt19937 random(11);
  int shared = 0;
  for (int trial = 0; trial < 100; ++trial) {
    const std::int64_t m = 1 + static_cast<std::int64_t>(random() % 4000),
                       n = 8 * (1 + static_cast<std::int64_t>(random() % 800));
    constexpr int kSteps = 10;
    const GemmTile tile{.m = 80 + 16 * static_cast<std::int64_t>(random() % 16),
                        .n = random() % 2 == 0 ? 256 : 128,
                        .cluster_n = 2,
                        .tail_parts = 1 + static_cast<std::int64_t>(random() % kSteps)};
    const GemmSchedule schedule =
        schedule_gemm(m, n, 64 * kSteps, 1, tile, 132, raster_group(false, tile, 0));
    const int down = static_cast<int>((n + 2 * tile.n - 1) / (2 * tile.n));
    const int across = static_cast<int>((m + tile.m - 1) / tile.m);
    const gpu::SharedTiles all(down * across, kSteps, 66, static_cast<int>(tile.tail_parts));
    const int parts = all.rest * all.parts;
    shared += parts > 0 ? 1 : 0;
    ASSERT_EQ(std::ssize(schedule.units), down * across + parts - all.rest);
    for (int i = 0; i < std::ssize(schedule.units); ++i) {
      const gpu::TilePart part =
          i < parts ? all.part(i) : gpu::TilePart{i - parts + all.rest, 0, kSteps, 0};
      const gpu::TilePlace place =
          gpu::grouped_tile(part.tile, down, across, static_cast<int>(kOwnRasterClusters));
      const GemmUnit& unit = schedule.units[static_cast<std::size_t>(i)];
      ASSERT_EQ(unit.n_begin, place.m * 2 * tile.n);
      ASSERT_EQ(unit.m_begin, place.n * tile.m);
      ASSERT_EQ(unit.m_end, std::min(m, unit.m_begin + tile.m));
      ASSERT_EQ(unit.k_begin, 64 * part.first);
      ASSERT_EQ(unit.k_end, 64 * (part.first + part.steps));
    }
  }
  EXPECT_GT(shared, 50);
}

}  // namespace
}  // namespace fuseline
