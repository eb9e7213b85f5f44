// The best ranges of neighbouring sizes.
#include <cmath>
#include <functional>
#include <random>

#include <gtest/gtest.h>

#include "sim/search/size_ranges.h"

namespace fuseline {
namespace {

// The least sum over all partings into at most `most` ranges, by trying them all.
double tried(std::size_t first, std::size_t count, std::size_t most,
             const std::function<double(const ShapeRange&)>& cost) {
  if (first == count) return 0;
  if (most == 0) return INFINITY;
  double best = INFINITY;
  for (std::size_t last = first; last < count; ++last)
    best = std::min(best, cost({first, last}) + tried(last + 1, count, most - 1, cost));
  return best;
}

TEST(SizeRanges, AreTheBestOfAllPartings) {
  std::mt19937 random(7);
  for (int round = 0; round < 50; ++round) {
    const std::size_t count = 1 + random() % 8;
    std::vector<std::vector<double>> costs(count, std::vector<double>(count));
    for (auto& row : costs)
      for (double& c : row) c = static_cast<double>(random() % 100);
    const auto cost = [&](const ShapeRange& r) { return costs[r.first][r.last]; };
    const std::vector<Parting> found = best_partings(count, count, cost);
    ASSERT_EQ(found.size(), count);
    for (std::size_t k = 0; k < count; ++k) {
      EXPECT_EQ(found[k].cost, tried(0, count, k + 1, cost));
      double sum = 0;
      std::size_t next = 0;
      for (const ShapeRange& r : found[k].ranges) {
        EXPECT_EQ(r.first, next);  // no size is left out, none is twice
        next = r.last + 1;
        sum += cost(r);
      }
      EXPECT_EQ(next, count);
      EXPECT_LE(found[k].ranges.size(), k + 1);
      EXPECT_EQ(sum, found[k].cost);
    }
  }
}

TEST(SizeRanges, PadToTheLargestOfEachRange) {
  // Sizes 1, 2, 10, 11 in two buckets: the gap between 2 and 10 is where they part.
  const double sizes[] = {1, 2, 10, 11};
  const auto padded = [&](const ShapeRange& r) {
    return sizes[r.last] * static_cast<double>(r.last - r.first + 1);
  };
  EXPECT_EQ(best_partings(4, 2, padded)[1].ranges, (std::vector<ShapeRange>{{0, 1}, {2, 3}}));
  EXPECT_EQ(best_partings(4, 2, padded)[1].cost, 2 + 2 + 11 + 11);
}

TEST(SizeRanges, AreAsFewAsGiveTheLeastCost) {
  const auto by_size = [](const ShapeRange& r) {
    return static_cast<double>(r.last - r.first + 1);
  };
  EXPECT_EQ(best_partings(5, 4, by_size)[3].ranges, (std::vector<ShapeRange>{{0, 4}}));
}

}  // namespace
}  // namespace fuseline
