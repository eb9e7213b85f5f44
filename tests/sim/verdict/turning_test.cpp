#include "sim/verdict/turning.h"

#include <cmath>
#include <map>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace fuseline {
namespace {

using testing::ElementsAre;

TEST(Turning, LooksAtTheEndsTheAskedSizeAndStepsOfFour) {
  EXPECT_THAT(sizes_in({.least = 100, .asked = 1000, .most = 9000}),
              ElementsAre(100, 250, 1000, 4000, 9000));
  EXPECT_THAT(sizes_in({.least = 1, .asked = 1, .most = 1}), ElementsAre(1));
  EXPECT_THAT(sizes_in({.least = 5, .asked = 5, .most = 6}), ElementsAre(5, 6));
}

// A gain that crosses 1 at a known size is found within 3 %, and to the size itself where sizes
// are small.
TEST(Turning, FindsTheSizeWhereALossBecomesAGain) {
  for (const std::int64_t truth : {2, 7, 641, 5003}) {
    const Turning t = find_turning({.least = 1, .asked = 900, .most = 20'000},
                                   [&](std::int64_t s) { return s >= truth ? 1.2 : 0.9; });
    ASSERT_TRUE(t.at);
    EXPECT_TRUE(t.gains_above);
    EXPECT_EQ(t.turns, 1);
    EXPECT_GE(*t.at, truth);
    EXPECT_LE(static_cast<double>(*t.at), static_cast<double>(truth) * 33 / 32 + 1e-9);
  }
}

TEST(Turning, SaysFromWhereAGainBecomesALoss) {
  const Turning t = find_turning({.least = 1, .asked = 64, .most = 1024},
                                 [](std::int64_t s) { return s < 17 ? 1.01 : 0.99; });
  EXPECT_EQ(t.at, 17);
  EXPECT_FALSE(t.gains_above);
}

TEST(Turning, IsNoneWhereNothingTurns) {
  for (const double gain : {0.8, 1.0, 1.3}) {
    const Turning t =
        find_turning({.least = 1, .asked = 64, .most = 1024}, [&](std::int64_t) { return gain; });
    EXPECT_FALSE(t.at);
    EXPECT_EQ(t.turns, 0);
  }
}

TEST(Turning, OfSeveralTheNearestCounts) {
  const auto gain = [](std::int64_t s) { return s < 6 || (s >= 300 && s < 3000) ? 1.1 : 0.9; };
  const Turning t = find_turning({.least = 1, .asked = 400, .most = 25'600}, gain);
  EXPECT_EQ(t.turns, 3);
  ASSERT_TRUE(t.at);
  EXPECT_NEAR(static_cast<double>(*t.at), 300, 10);
}

// Sizes at which the choice cannot be made, and those where it changes nothing, have no side: a
// gain beyond them is no turn.
TEST(Turning, SkipsSizesWithoutASide) {
  const auto gain = [](std::int64_t s) -> std::optional<double> {
    if (s < 16) return std::nullopt;
    return s < 256 ? 1.0 : 1.5;
  };
  EXPECT_FALSE(find_turning({.least = 1, .asked = 64, .most = 4096}, gain).at);
}

TEST(Turning, AsksForEachSizeOfTheFirstLookOnceAndFewMore) {
  std::map<std::int64_t, int> asked;
  static_cast<void>(find_turning({.least = 1, .asked = 2048, .most = 32'768}, [&](std::int64_t s) {
    ++asked[s];
    return s >= 777 ? 2.0 : 0.5;
  }));
  for (const auto& [size, count] : asked) EXPECT_EQ(count, 1) << size;
  EXPECT_LT(asked.size(), 18U);
}

}  // namespace
}  // namespace fuseline
