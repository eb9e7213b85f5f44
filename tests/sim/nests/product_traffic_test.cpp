// The least traffic for a capacity beside loops that are run with a near memory.
#include "sim/nests/product_traffic.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <random>
#include <set>
#include <vector>

#include "sim/nests/chain_traffic.h"

namespace fuseline {
namespace {

// Runs the tiles of a product in an order. Each matrix has one rectangle in the near memory: that
// of the outer `inside` loops' tiles, whole along the others. A rectangle that changes is loaded; a
// sum that leaves before the end is stored and loaded again.
struct RunLoops {
  std::int64_t size[3];  // m, n, k
  std::int64_t edge[3];
  int order[3];

  struct Moved {
    double capacity = 0, bytes = 0;
  };

  // `inside`: of a, b and c.
  [[nodiscard]] Moved run(const ProductShape& s, const int (&inside)[3]) const {
    static constexpr int kAlong[3][2] = {{0, 2}, {1, 2}, {0, 1}};
    const double width[3] = {s.a_bytes, s.b_bytes, 4};
    Moved out;
    std::int64_t tiles[3];
    for (int l = 0; l < 3; ++l) tiles[l] = (size[l] + edge[l] - 1) / edge[l];
    std::vector<std::int64_t> here[3];
    double most[3] = {0, 0, 0};
    std::map<std::vector<std::int64_t>, bool> begun;
    double sums = 0;
    std::int64_t at[3];
    for (at[order[0]] = 0; at[order[0]] < tiles[order[0]]; ++at[order[0]])
      for (at[order[1]] = 0; at[order[1]] < tiles[order[1]]; ++at[order[1]])
        for (at[order[2]] = 0; at[order[2]] < tiles[order[2]]; ++at[order[2]])
          for (int x = 0; x < 3; ++x) {
            std::vector<std::int64_t> box;
            double elements = 1;
            for (const int l : kAlong[x]) {
              const int place = static_cast<int>(std::find(order, order + 3, l) - order);
              const bool whole = place >= inside[x];
              const std::int64_t begin = whole ? 0 : at[l] * edge[l];
              const std::int64_t end = whole ? size[l] : std::min(size[l], begin + edge[l]);
              box.push_back(begin);
              elements *= static_cast<double>(end - begin);
            }
            most[x] = std::max(most[x], elements);
            if (here[x] == box) continue;
            here[x] = box;
            if (x < 2) {
              out.bytes += elements * width[x];
            } else {
              // What was begun before was stored and comes back.
              if (begun[box]) sums += 2 * elements * width[2];
              begun[box] = true;
            }
          }
    out.bytes += sums;
    for (int x = 0; x < 3; ++x) out.capacity += most[x] * width[x];
    return out;
  }
};

// Every tiling of a small product, run; for each capacity the least that one moves.
std::vector<RunLoops::Moved> all_tilings(const ProductShape& s) {
  std::vector<RunLoops::Moved> all;
  for (std::int64_t tm = 1; tm <= s.m; ++tm)
    for (std::int64_t tn = 1; tn <= s.n; ++tn)
      for (std::int64_t tk = 1; tk <= s.k; ++tk) {
        int order[3] = {0, 1, 2};
        do {
          const RunLoops loops{{s.m, s.n, s.k}, {tm, tn, tk}, {order[0], order[1], order[2]}};
          for (int a = 0; a <= 3; ++a)
            for (int b = 0; b <= 3; ++b)
              for (int c = 0; c <= 3; ++c) all.push_back(loops.run(s, {a, b, c}));
        } while (std::next_permutation(order, order + 3));
      }
  return all;
}

double least_within(const std::vector<RunLoops::Moved>& all, double capacity) {
  double least = INFINITY;
  for (const RunLoops::Moved& m : all)
    if (m.capacity <= capacity) least = std::min(least, m.bytes);
  return least;
}

TEST(ProductTraffic, CurvesOfSmallProductsAreTheLeastOfAllTilingsThatAreRun) {
  for (const ProductShape& s :
       {ProductShape{.m = 4, .n = 5, .k = 6}, ProductShape{.m = 1, .n = 7, .k = 5},
        ProductShape{.m = 6, .n = 3, .k = 2, .a_bytes = 1},
        ProductShape{.m = 3, .n = 5, .k = 7, .b_bytes = 0.5}}) {
    const std::vector<RunLoops::Moved> all = all_tilings(s);
    const std::vector<TiledTraffic> curve = tiled_traffic(s);
    std::set<std::int64_t> capacities;
    for (const RunLoops::Moved& m : all)
      capacities.insert(static_cast<std::int64_t>(std::ceil(m.capacity)));
    ASSERT_GT(capacities.size(), 20U);
    for (const std::int64_t capacity : capacities) {
      const auto best = best_within(curve, Bytes(capacity));
      ASSERT_TRUE(best) << capacity;
      EXPECT_EQ(
          best->moved.value(),
          static_cast<std::int64_t>(std::ceil(least_within(all, static_cast<double>(capacity)))))
          << s.m << " x " << s.n << " x " << s.k << " within " << capacity;
    }
    EXPECT_FALSE(best_within(curve, Bytes(*capacities.begin() - 1)));
  }
}

TEST(ProductTraffic, NoTilingIsBelowWhatIsPossible) {
  std::mt19937 random(5);
  const auto pick = [&](double most) {
    const double u = static_cast<double>(random()) / 4294967296.0;
    return static_cast<std::int64_t>(std::pow(most, u));
  };
  double tightest = 0;
  for (int i = 0; i < 60; ++i) {
    const double widths[] = {0.5, 1, 2, 4};
    const ProductShape s{.m = pick(3000),
                         .n = pick(3000),
                         .k = pick(3000),
                         .a_bytes = widths[random() % 4],
                         .b_bytes = widths[random() % 4],
                         .other = Bytes(static_cast<std::int64_t>(random() % 1000))};
    for (const TiledTraffic& t : tiled_traffic(s)) {
      const Bytes least = least_traffic(s, t.capacity);
      ASSERT_LE(least, t.moved) << s.m << " x " << s.n << " x " << s.k << " within "
                                << t.capacity.value() << ": " << describe(t.tiles);
      if (t.moved > s.other + Bytes(static_cast<std::int64_t>(2 * (s.a_total() + s.b_total()))))
        tightest = std::max(tightest, least.as_double() / t.moved.as_double());
    }
  }
  EXPECT_GT(tightest, 0.5);  // a bound of nothing would pass too
}

TEST(ProductTraffic, ABoxOfMultiplicationsIsNeverBeatenByARandomOne) {
  std::mt19937 random(9);
  const auto real = [&](double low, double high) {
    return low + (high - low) * static_cast<double>(random()) / 4294967296.0;
  };
  for (int i = 0; i < 2000; ++i) {
    const ProductShape s{.m = 1 + static_cast<std::int64_t>(random() % 100),
                         .n = 1 + static_cast<std::int64_t>(random() % 100),
                         .k = 1 + static_cast<std::int64_t>(random() % 100),
                         .a_bytes = real(0.5, 4),
                         .b_bytes = real(0.5, 4)};
    const double p = real(0.01, static_cast<double>(s.m)), q = real(0.01, static_cast<double>(s.n)),
                 r = real(0.01, static_cast<double>(s.k));
    const double bytes = s.a_bytes * p * r + s.b_bytes * q * r + s.c_bytes * p * q;
    EXPECT_GE(most_multiplications(s, bytes) * (1 + 1e-9), p * q * r) << i;
  }
}

TEST(ProductTraffic, OfALargeSquareFollowsTheRootOfTheCapacity) {
  const ProductShape s{.m = 1 << 14, .n = 1 << 14, .k = 1 << 14};
  const double words = 1 << 20;  // 2 MiB
  const double n = 1 << 14;
  const Bytes least = least_traffic(s, Bytes(2 << 20));
  // 2 n³ / √S words, less what begins on the chip: S and c.
  const double formula = 2 * (2 * n * n * n / std::sqrt(words) - 2 * words - n * n);
  EXPECT_NEAR(least.as_double() / formula, 1, 0.05);
  // What fits moves once.
  EXPECT_EQ(least_traffic(s, Bytes(std::int64_t{4} << 30)).value(),
            static_cast<std::int64_t>((s.a_total() + s.b_total()) * (1 - 1e-9)));
}

TEST(ChainTraffic, NeverMovesLessThanIsPossibleNorMoreThanTwoProductsApart) {
  const ChainShape chain{.m = 200, .f = 300, .k = 100, .n = 100};
  const ProductShape first{.m = 200, .n = 300, .k = 100, .other = Bytes(2 * 200 * 300)};
  const ProductShape second{.m = 200, .n = 100, .k = 300};
  const auto together = tiled_traffic(chain);
  const auto one = tiled_traffic(first), two = tiled_traffic(second);
  std::size_t gains = 0;
  for (const TiledTraffic& t : together) {
    EXPECT_LE(least_traffic(chain, t.capacity), t.moved);
    const auto a = best_within(one, t.capacity), b = best_within(two, t.capacity);
    if (a && b && t.moved < a->moved + b->moved) ++gains;
  }
  EXPECT_GT(gains, 0U);
  // With room for everything each matrix moves once, and h not at all.
  EXPECT_EQ(together.back().moved.value(), 2 * (200 * 100 + 300 * 100 + 100 * 300));
}

}  // namespace
}  // namespace fuseline
