#include "sim/kernels/gemm_schedule.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace fuseline {
namespace {

TEST(GemmSchedule, CoversEveryOutputAndDepthExactlyOnce) {
  std::mt19937 random(11);
  const auto pick = [&random](std::int64_t low, std::int64_t high) {
    return low + static_cast<std::int64_t>(random() % static_cast<unsigned>(high - low + 1));
  };
  for (int trial = 0; trial < 60; ++trial) {
    // Given a random small problem and tile,
    const std::int64_t m = pick(1, 40), n = pick(1, 40), k = pick(1, 30), batch = pick(1, 3);
    GemmTile tile{.m = pick(1, 9), .n = pick(1, 9), .k = pick(1, 5)};
    tile.cluster_m = pick(1, 2);
    tile.cluster_n = pick(1, 3);
    (trial % 2 == 0 ? tile.split_k : tile.tail_parts) = pick(1, 4);
    // when it is scheduled,
    const GemmSchedule schedule = schedule_gemm(m, n, k, batch, tile, pick(1, 20), pick(1, 6));
    // then every (batch, row, column, depth) is computed by one unit.
    std::vector<int> count(static_cast<std::size_t>(batch * m * n * k), 0);
    for (const GemmUnit& unit : schedule.units) {
      for (std::int64_t i = unit.m_begin; i < unit.m_end; ++i) {
        for (std::int64_t j = unit.n_begin; j < unit.n_end; ++j) {
          for (std::int64_t l = unit.k_begin; l < unit.k_end; ++l) {
            ++count[static_cast<std::size_t>(((unit.batch * m + i) * n + j) * k + l)];
          }
        }
      }
    }
    for (const int c : count) ASSERT_EQ(c, 1) << "trial " << trial;
  }
}

TEST(GemmSchedule, PutsTheLastWavesTilesFirstInParts) {
  // Given 7 tiles of 4 steps on 4 clusters, the last 3 tiles in 2 parts each,
  const GemmTile tile{.m = 10, .n = 10, .k = 10, .tail_parts = 2};
  const GemmSchedule schedule = schedule_gemm(70, 10, 40, 1, tile, 4, 7);
  // then tiles 0 to 2 come first, half of K each, and waves end behind them.
  std::vector<std::vector<std::int64_t>> units;
  for (const GemmUnit& u : schedule.units) units.push_back({u.m_begin, u.k_begin, u.k_end});
  EXPECT_EQ(units, (std::vector<std::vector<std::int64_t>>{{0, 0, 20},
                                                           {10, 0, 20},
                                                           {20, 0, 20},
                                                           {0, 20, 40},
                                                           {10, 20, 40},
                                                           {20, 20, 40},
                                                           {30, 0, 40},
                                                           {40, 0, 40},
                                                           {50, 0, 40},
                                                           {60, 0, 40}}));
  std::vector<std::int64_t> ends;
  for (const UnitRange& wave : schedule.waves()) ends.push_back(wave.end);
  EXPECT_EQ(ends, (std::vector<std::int64_t>{4, 6, 10}));
}

std::vector<std::vector<std::int64_t>> origins(const GemmSchedule& schedule) {
  std::vector<std::vector<std::int64_t>> result;
  for (const GemmUnit& unit : schedule.units) result.push_back({unit.m_begin, unit.n_begin});
  return result;
}

TEST(GemmSchedule, WalksGroupsOfRowsAlongColumnsAndBack) {
  // Given 4 × 3 tiles of 10 × 10 and clusters of one, in groups of two rows of tiles,
  const GemmTile tile{.m = 10, .n = 10, .k = 10};
  const GemmSchedule schedule = schedule_gemm(40, 30, 10, 1, tile, 4, 2);
  // then the first group goes to the right, the second returns to the left.
  EXPECT_EQ(origins(schedule), (std::vector<std::vector<std::int64_t>>{{0, 0},
                                                                       {10, 0},
                                                                       {0, 10},
                                                                       {10, 10},
                                                                       {0, 20},
                                                                       {10, 20},
                                                                       {20, 20},
                                                                       {30, 20},
                                                                       {20, 10},
                                                                       {30, 10},
                                                                       {20, 0},
                                                                       {30, 0}}));
  EXPECT_EQ(schedule.waves().size(), 3U);
}

TEST(GemmSchedule, AClusterAlongColumnsGroupsColumns) {
  // 1 × 2 clusters: units of 10 × 20, groups of two tiles = one cluster of columns, walked down and
  // up.
  const GemmTile tile{.m = 10, .n = 10, .k = 10, .cluster_n = 2};
  const GemmSchedule schedule = schedule_gemm(30, 40, 10, 1, tile, 4, 2);
  EXPECT_EQ(origins(schedule), (std::vector<std::vector<std::int64_t>>{
                                   {0, 0}, {10, 0}, {20, 0}, {20, 20}, {10, 20}, {0, 20}}));
  EXPECT_EQ(schedule.units_per_wave, 2);
}

TEST(OwnLoadedRows, AreThoseThatExistInAPowerOfTwo) {
  EXPECT_EQ(own_loaded_rows(64, 1), 8);
  EXPECT_EQ(own_loaded_rows(64, 16), 16);
  EXPECT_EQ(own_loaded_rows(64, 17), 32);
  EXPECT_EQ(own_loaded_rows(64, 75), 64);
  EXPECT_EQ(own_loaded_rows(128, 1), 128);
}

TEST(GemmSchedule, SplitKCutsAtWholeStages) {
  // 100 of k in stages of 16 over 3 splits: ceil(7 stages / 3) = 3 stages = 48 each.
  const GemmTile tile{.m = 8, .n = 8, .k = 16, .split_k = 3};
  const GemmSchedule schedule = schedule_gemm(8, 8, 100, 1, tile, 4, 2);
  ASSERT_EQ(schedule.units.size(), 3U);
  EXPECT_EQ(schedule.units[1].k_begin, 48);
  EXPECT_EQ(schedule.units[2].k_begin, 96);
  EXPECT_EQ(schedule.units[2].k_end, 100);
}

}  // namespace
}  // namespace fuseline
