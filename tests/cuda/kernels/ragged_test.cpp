// Groups of rows and routing: device code that runs on the host too.
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>
#include <vector>

#include "cuda/kernels/ragged.cuh"
#include "cuda/kernels/routing.cuh"
#include "model/expert_routing.h"
#include "model/ragged_rows.h"
#include "sim/kernels/codes_tile.h"

namespace fuseline {
namespace {

struct Lengths {
  std::vector<int> ends;

  explicit Lengths(const std::vector<std::int64_t>& lengths) {
    int end = 0;
    for (const std::int64_t length : lengths) ends.push_back(end += static_cast<int>(length));
  }
  [[nodiscard]] gpu::RowGroups groups() const {
    return {ends.data(), static_cast<int>(ends.size())};
  }
  [[nodiscard]] int rows() const { return ends.empty() ? 0 : ends.back(); }
};

// A third of the groups has no rows, and some have a row more or less than whole tiles.
std::vector<std::int64_t> random_lengths(std::mt19937& random, int tile_m) {
  std::vector<std::int64_t> lengths(1 + random() % 12);
  for (std::int64_t& length : lengths) {
    const auto tiles = static_cast<std::int64_t>(random() % 3) * tile_m;
    const std::int64_t more[] = {0, 1, tile_m - 1, static_cast<std::int64_t>(random() % 7)};
    length = random() % 3 == 0 ? 0 : tiles + more[random() % 4];
  }
  return lengths;
}

// Every row of every group is in one tile for each column tile, and no tile has rows of two groups.
TEST(RaggedTiles, HoldEachRowOnce) {
  std::mt19937 random(1);
  for (int i = 0; i < 300; ++i) {
    const int tile_m = i % 2 == 0 ? 128 : 4;
    const int tiles_n = 1 + static_cast<int>(random() % 5);
    const int raster = 1 + static_cast<int>(random() % 8);
    const Lengths lengths(random_lengths(random, tile_m));
    const gpu::RowGroups groups = lengths.groups();
    const int most = gpu::most_row_tiles(lengths.rows(), groups.count, tile_m) * tiles_n;
    const int places = lengths.rows() * tiles_n;
    std::vector<int> seen(static_cast<std::size_t>(places), 0);
    gpu::RaggedTiles tiles{groups, tile_m, tiles_n, raster};
    bool ended = false;
    EXPECT_LE(gpu::row_tiles(groups, tile_m) * tiles_n, most);
    for (int t = 0; t < most + 3; ++t) {
      const gpu::RaggedTile tile = tiles.find(t);
      EXPECT_EQ(tile.group >= 0, t < gpu::row_tiles(groups, tile_m) * tiles_n);
      if (tile.group < 0) {
        ended = true;
        continue;
      }
      // Who takes every n-th tile only finds the same ones.
      gpu::RaggedTiles alone{groups, tile_m, tiles_n, raster};
      const gpu::RaggedTile again = alone.find(t);
      ASSERT_EQ(again.group, tile.group);
      ASSERT_EQ(again.row, tile.row);
      ASSERT_EQ(again.column_tile, tile.column_tile);
      ASSERT_FALSE(ended) << "tile " << t << " comes behind a missing one";
      ASSERT_LT(t, most) << "more tiles than thread blocks are launched";
      ASSERT_GE(tile.row, groups.begin(tile.group));
      ASSERT_EQ(tile.end, groups.ends[tile.group]);
      ASSERT_LT(tile.row, tile.end) << "a tile without rows";
      for (int row = tile.row; row < std::min(tile.row + tile_m, tile.end); ++row) {
        const int place = row * tiles_n + tile.column_tile;
        ++seen.at(static_cast<std::size_t>(place));
      }
    }
    EXPECT_TRUE(std::ranges::all_of(seen, [](int n) { return n == 1; }));
  }
}

TEST(RaggedTiles, AreNoMoreThanLaunchedFor) {
  EXPECT_EQ(gpu::most_row_tiles(0, 8, 128), 0);
  EXPECT_EQ(gpu::most_row_tiles(3, 8, 128), 3);  // one row each
  EXPECT_EQ(gpu::most_row_tiles(128, 1, 128), 1);
  EXPECT_EQ(gpu::most_row_tiles(129, 1, 128), 2);
  EXPECT_EQ(gpu::most_row_tiles(130, 2, 128), 3);    // 1 and 129
  EXPECT_EQ(gpu::most_row_tiles(1024, 8, 128), 15);  // 1 in seven groups, and 1017
}

TEST(RowGroups, OfARowIsTheOneThatHasIt) {
  std::mt19937 random(2);
  for (int i = 0; i < 100; ++i) {
    const Lengths lengths(random_lengths(random, 8));
    const gpu::RowGroups groups = lengths.groups();
    for (int row = 0; row < lengths.rows(); ++row) {
      const int group = gpu::group_of(groups, row);
      EXPECT_GE(row, groups.begin(group));
      EXPECT_LT(row, groups.ends[group]);
    }
  }
}

// The kernels' experts are those of the executor and of the reference.
TEST(Routing, OfThePatternIsThePlans) {
  for (const std::int64_t rows : {1, 5, 16, 301})
    for (const auto& [experts, each] : {std::pair{8, 2}, {128, 8}, {5, 3}, {3, 3}}) {
      ExpertChoice choice;
      choice.count = each;
      choice.loads = assumed_rows(rows, experts, each);
      const Lengths lengths(choice.loads.groups);
      for (int m = 0; m < rows; ++m) {
        const RoutedRow row =
            route_row(choice, m, experts, [](std::int64_t e) { return static_cast<double>(e); });
        for (int j = 0; j < each; ++j)
          EXPECT_EQ(gpu::expert_of_pattern(lengths.groups(), static_cast<int>(rows), m, j),
                    row.experts[static_cast<std::size_t>(j)])
              << rows << " rows, row " << m;
      }
    }
}

// One expert after the other, as a row's threads find them: those of the reference, ties included.
TEST(Routing, OfTheLargestScoresIsTheReferences) {
  std::mt19937 random(3);
  for (int i = 0; i < 200; ++i) {
    const int experts = 4 + static_cast<int>(random() % 20);
    std::vector<float> scores(static_cast<std::size_t>(experts));
    for (float& score : scores) score = static_cast<float>(random() % 5) - 2.0F;  // many are equal
    ExpertChoice choice;
    choice.count = 4;
    const RoutedRow want = route_row(choice, 0, experts, [&](std::int64_t e) {
      return static_cast<double>(scores[static_cast<std::size_t>(e)]);
    });
    float last_score = std::numeric_limits<float>::infinity();
    int last = -1;
    for (int j = 0; j < choice.count; ++j) {
      int best = -1;
      for (int e = 0; e < experts; ++e) {
        const float score = scores[static_cast<std::size_t>(e)];
        if (!gpu::chosen_before(last_score, last, score, e)) continue;
        if (best < 0 || gpu::chosen_before(score, e, scores[static_cast<std::size_t>(best)], best))
          best = e;
      }
      ASSERT_EQ(best, want.experts[static_cast<std::size_t>(j)]);
      last_score = scores[static_cast<std::size_t>(best)];
      last = best;
    }
  }
}

// The place of a key is the number of keys that come before it.
TEST(Routing, SortsKeysAsAStableSortDoes) {
  std::mt19937 random(4);
  std::vector<float> keys(97);
  for (float& key : keys) key = static_cast<float>(random() % 6);
  std::vector<int> order(keys.size());
  std::iota(order.begin(), order.end(), 0);
  const auto key = [&](int i) { return keys[static_cast<std::size_t>(i)]; };
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return key(a) < key(b); });
  for (int i = 0; i < static_cast<int>(keys.size()); ++i) {
    int place = 0;
    for (int j = 0; j < static_cast<int>(keys.size()); ++j)
      place += gpu::sorted_before(key(j), j, key(i), i) ? 1 : 0;
    EXPECT_EQ(order[static_cast<std::size_t>(place)], i);
  }
}

// The simulator counts the tiles of products of codes without the kernels' headers.
TEST(RaggedTiles, AreAsManyInTheSimulator) {
  for (const int rows : {0, 1, 7, 8, 9, 64, 1000})
    for (const int groups : {1, 2, 8, 100})
      for (const int tile : {8, 16, 64})
        EXPECT_EQ(fuseline::most_row_tiles(rows, groups, tile),
                  gpu::most_row_tiles(rows, groups, tile))
            << rows << " " << groups << " " << tile;
}

}  // namespace
}  // namespace fuseline
