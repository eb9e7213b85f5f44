// How many tiles our own mainloop sweeps together.
#include "sim/kernels/gemm_raster.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <random>

#include "sim/kernels/gemm_library.h"
#include "sim/kernels/gemm_schedule.h"
#include "sim/kernels/gemm_time.h"
#include "sim/kernels/gemm_traffic.h"
#include "tests/sim/kernels/gemm_cases.h"

namespace fuseline {
namespace {

using test::plain;

constexpr Bytes kL2(std::int64_t{60} << 20);

// LLaMA-3 8B's gate_up of 1,128 tokens in tiles of 128 x 256. With groups of eight a ninth row of
// tiles read all weights once more: 518 MB on an H200, and 286 MB with one group.
TEST(GemmRaster, NoRowOfTilesIsLeftAlone) {
  const RasterTiles tiles{.across = 9,
                          .along = 112,
                          .at_once = 132,
                          .panel_across = Bytes(128 * 4096 * 2),
                          .panel_along = Bytes(256 * 4096 * 2),
                          .stored = Bytes(2 * 128 * 256)};
  EXPECT_EQ(fastest_group(tiles, kL2), 9);
}

// LLaMA-2 13B's gate_up of 1,432 tokens in turned tiles of 160 x 256, which sweeps nine tiles of
// tokens: eight clusters of weights fill more than a wave, so that two waves want each of them
// (1,038 MB; two clusters 563 MB).
TEST(GemmRaster, ShortSweepsHaveLowGroups) {
  const RasterTiles tiles{.across = 54,
                          .along = 9,
                          .at_once = 66,
                          .panel_across = Bytes(512 * 5120 * 2),
                          .panel_along = Bytes(160 * 5120 * 2),
                          .stored = Bytes(2 * 512 * 160)};
  EXPECT_LE(fastest_group(tiles, kL2), 2);
}

// Where L2 holds both operands no order reads more. 5,000 x 5,120 x 2,048 in tiles of 64 x 128 took
// 233 us on an H200 in groups of one, and 160 to 184 us in groups of 2 to 32.
TEST(GemmRaster, NeighboursShareWhatIsInL2Anyway) {
  const RasterTiles tiles{.across = 79,
                          .along = 40,
                          .at_once = 132,
                          .panel_across = Bytes(64 * 2048 * 2),
                          .panel_along = Bytes(128 * 2048 * 2),
                          .stored = Bytes(2 * 64 * 128)};
  EXPECT_GE(fastest_group(tiles, kL2), 2);
  // Thread blocks that follow each other share the weights in a group, and x in the next column.
  EXPECT_LT(reaching_share(tiles, 4), 0.8 * reaching_share(tiles, 1));
  EXPECT_LT(reaching_share(tiles, 4), 0.95 * reaching_share(tiles, 32));
  // Of clusters of two half as many follow each other, and of larger ones nothing is known.
  RasterTiles pairs = tiles, fours = tiles;
  pairs.blocks = 2;
  fours.blocks = 4;
  EXPECT_GT(reaching_share(pairs, 4), reaching_share(tiles, 4));
  EXPECT_EQ(reaching_share(fours, 4), 1);
}

TEST(GemmRaster, OneWaveReadsEverythingOnceInAnyOrder) {
  for (const std::int64_t across : {1, 5, 8, 30})
    EXPECT_EQ(fastest_group({.across = across,
                             .along = 4,
                             .at_once = 132,
                             .panel_across = Bytes(1 << 20),
                             .panel_along = Bytes(1 << 20),
                             .stored = Bytes(1 << 16)},
                            kL2),
              std::min(across, kOwnRasterClusters));
}

TEST(GemmRaster, OnlyPersistentKernelsOfOneProductChoose) {
  const Gpu hopper = load_gpu("h200"), ampere = load_gpu("a100-sxm-80gb");
  GemmProblem problem = plain(1128, 28672, 4096);
  problem.library = false;
  const GemmTile tile{.m = 128, .n = 256};
  EXPECT_EQ(raster_group_of(problem, tile, hopper), 9);
  EXPECT_EQ(raster_group_of(problem, tile, ampere), kOwnRasterClusters);
  GemmProblem batch = problem;
  batch.batch = 2;
  EXPECT_EQ(raster_group_of(batch, tile, hopper), kOwnRasterClusters);
  problem.library = true;
  EXPECT_EQ(raster_group_of(problem, tile, hopper), raster_group(true, tile, 12));
}

// As a measurement of a day says: with the least reads no group is worse for HBM than today's.
TEST(GemmRaster, GroupsOfTheDayAreThoseThatReadLeast) {
  const Gpu gpu = load_gpu("h200");
  GemmProblem problem = plain(5000, 5120, 2048);
  problem.library = false;
  const GemmTile tile{.m = 64, .n = 128, .stages = 8};
  EXPECT_GT(raster_group_of(problem, tile, gpu), 1);
  problem.ran_group = kLeastReadGroup;
  EXPECT_EQ(raster_group_of(problem, tile, gpu), 1);
  problem.ran_group = 8;
  EXPECT_EQ(raster_group_of(problem, tile, gpu), 8);
}

// The count of waves agrees with the walk through L2: what it chooses never reads much more than
// the usual group, and over many products it reads less.
TEST(GemmRaster, WalksReadLess) {
  const Gpu gpu = load_gpu("h200");
  std::mt19937 random(5);
  const auto between = [&random](std::int64_t low, std::int64_t high) {
    return low + static_cast<std::int64_t>(random()) % (high - low + 1);
  };
  double usual = 0, chosen = 0;
  int others = 0;
  for (int trial = 0; trial < 40; ++trial) {
    GemmProblem problem = plain(between(300, 3500), 8 * between(400, 3500), 64 * between(16, 160));
    problem.library = false;
    GemmWalk walk_of{
        .problem = problem, .tile = choose_tile(problem, gpu), .drift = gpu.constants.gemm.drift};
    walk_of.blocks_at_once = blocks_at_once(walk_of.tile, gpu);
    walk_of.hbm_of_step = hbm_bytes_of_step(problem, walk_of.tile, gpu);
    const auto read_by = [&](std::int64_t group) {
      walk_of.raster_group = group;
      L2Cache cache(gpu.l2_capacity);
      WalkTraffic traffic = walk(walk_of, cache);
      catch_up(traffic, walk_of.hbm_of_step);
      double read = 0;
      for (const GemmWave& wave : traffic.waves) read += wave.hbm.read.as_double();
      return read;
    };
    const double before = read_by(raster_group(false, walk_of.tile, 0));
    const double now = read_by(raster_group_of(problem, walk_of.tile, gpu));
    EXPECT_LE(now, 1.1 * before) << problem.m << " x " << problem.n << " x " << problem.k;
    usual += before;
    chosen += now;
    others += now != before ? 1 : 0;
  }
  EXPECT_LT(chosen, 0.95 * usual);
  EXPECT_GT(others, 10);
}

}  // namespace
}  // namespace fuseline
