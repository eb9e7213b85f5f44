// Thread blocks that fall behind read again what L2 has lost, as far as HBM lets them fall behind.
#include <gtest/gtest.h>

#include <cstdint>

#include "sim/kernels/gemm_model.h"
#include "sim/kernels/gemm_time.h"
#include "sim/kernels/gemm_traffic.h"
#include "tests/sim/sim_support.h"

namespace fuseline {
namespace {

// Numbers of tensors: a, b, the result and a workspace.
GemmProblem drifting_gemm(std::int64_t m, std::int64_t n, std::int64_t k) {
  return plain_gemm(m, n, k, 11, 12, 13, 14);
}
constexpr double kSlowHalf = 18;  // after 8,192 elements of k: 1,629, a fifth of the way

// Two rows of tiles of one wave want the same 16 panels of b; L2 holds a twentieth of them.
struct TwoRows {
  GemmProblem problem = drifting_gemm(128, 1024, 8192);
  GemmTile tile{.m = 64, .n = 64};

  [[nodiscard]] GemmWave wave(double drift, Bytes hbm_of_step) const {
    L2Cache cache(Bytes(800'000));
    const auto waves = walk_gemm(problem, tile, schedule_gemm(128, 1024, 8192, 1, tile, 32, 2),
                                 cache, drift, hbm_of_step);
    EXPECT_EQ(waves.size(), 1U);
    return waves.front();
  }
  [[nodiscard]] Bytes operands() const { return Bytes(2 * 8192 * (128 + 1024)); }
};

TEST(GemmDrift, WhoFallsBehindReadsAgain) {
  const TwoRows two;
  EXPECT_EQ(two.wave(0, Bytes()).hbm.read, two.operands());
  EXPECT_GT(two.wave(kSlowHalf, Bytes()).hbm.read, Bytes(two.operands().value() * 3 / 2));
}

// Nothing brings them together between waves: of 16 waves that all read the same of b and as much
// of a, the last ones read more again than the first ones.
TEST(GemmDrift, LaterWavesHaveFallenFurtherBehind) {
  const GemmProblem problem = drifting_gemm(128 * 16, 1024, 8192);
  const GemmTile tile{.m = 64, .n = 64};
  L2Cache cache(Bytes(3'000'000));
  const auto waves = walk_gemm(problem, tile, schedule_gemm(128 * 16, 1024, 8192, 1, tile, 32, 2),
                               cache, kSlowHalf / 2);
  ASSERT_EQ(waves.size(), 16U);
  EXPECT_GT(waves[15].hbm.read.as_double(), 1.2 * waves[1].hbm.read.as_double());
}

TEST(GemmDrift, WhereHbmDecidesBlocksStayTogether) {
  const TwoRows two;
  // In a step HBM moves half of what is distinct in it.
  const Bytes half(two.operands().value() / (8192 / 64) / 2);
  EXPECT_EQ(two.wave(kSlowHalf, half).hbm.read, two.operands());
}

TEST(GemmDrift, HbmWithTimeToSpareLetsThemFallApart) {
  const TwoRows two;
  const std::int64_t steps = 8192 / 64;
  const Bytes all = two.wave(kSlowHalf, Bytes()).hbm.read;
  EXPECT_EQ(two.wave(kSlowHalf, all).hbm.read, all);
  // Between the two, what HBM has time for.
  const Bytes some(two.operands().value() / steps * 5 / 4);
  EXPECT_EQ(two.wave(kSlowHalf, some).hbm.read, some * steps);
}

// GPUs with equal L2 share a walk, however fast their HBM is: the same key, and what HBM has no
// time for is taken off behind the walk.
TEST(GemmDrift, WhatHbmHasTimeForIsNoPartOfTheWalk) {
  const TwoRows two;
  const Bytes half(two.operands().value() / (8192 / 64) / 2);
  GemmWalk slow{two.problem, two.tile, 32, 2, kSlowHalf, half};
  GemmWalk fast = slow;
  fast.hbm_of_step = half * 100;
  WalkKey of_slow, of_fast;
  describe(slow, of_slow);
  describe(fast, of_fast);
  EXPECT_EQ(of_slow.words(), of_fast.words());
  L2Cache cache(Bytes(800'000));
  WalkTraffic traffic = walk(slow, cache);
  EXPECT_EQ(traffic.waves.front().hbm.read, two.wave(kSlowHalf, Bytes()).hbm.read);
  catch_up(traffic, half);
  EXPECT_EQ(traffic.waves.front().hbm.read, two.operands());
}

// The middle of a very large GEMM is not walked. It takes the mean of waves that are, and so of
// what HBM left them.
TEST(GemmDrift, WavesThatAreNotWalkedTakeTheMeanOfWhatHbmLeft) {
  const GemmWalk large{drifting_gemm(262144, 8192, 8192),
                       {.m = 128, .n = 256, .cluster_m = 2},
                       132,
                       12,
                       kSlowHalf,
                       Bytes()};
  L2Cache cache(Bytes(4 << 20));
  WalkTraffic traffic = walk(large, cache);
  ASSERT_TRUE(traffic.repeated);
  const RepeatedWaves middle = *traffic.repeated;
  const auto wave = [&](std::int64_t i) { return traffic.waves[static_cast<std::size_t>(i)]; };
  const Bytes before = wave(middle.waves.begin).hbm.read;
  catch_up(traffic, Bytes(1));
  Bytes sum;
  for (std::int64_t i = middle.like.begin; i < middle.like.end; ++i) sum += wave(i).hbm.read;
  const Bytes mean(sum.value() / (middle.like.end - middle.like.begin));
  EXPECT_LT(mean, before);
  for (std::int64_t i = middle.waves.begin; i < middle.waves.end; ++i)
    ASSERT_EQ(wave(i).hbm.read, mean) << i;
  EXPECT_LT(middle.waves.end, std::ssize(traffic.waves));
}

// One H200 took 95.7 us (cuda/bench/results/forty-h200.csv); 171 were predicted when the thread
// blocks fell apart whatever HBM did. Bytes at least once, and none of them twice.
TEST(GemmDrift, WeightsOfALongThinProductAreReadOnce) {
  const Gpu gpu = load_gpu("h200");
  GemmProblem problem = drifting_gemm(128, 8128, 22592);
  problem.library = false;
  problem.ran = TileEdges{64, 128};
  L2Cache cache(effective_l2_capacity(gpu));
  const GemmEstimate e = simulate_gemm(problem, gpu, cache);
  const double once = 2.0 * 22592 * (128 + 8128);
  EXPECT_GE(e.hbm.read.as_double(), once);
  EXPECT_LE(e.hbm.read.as_double(), once * 1.001);
  EXPECT_NEAR(to_us(e.time.time), 95.7, 0.15 * 95.7);  // 171 is 79 % off
}

// A tile's own tables and rows: those of a unit of two blocks were divided by its height, so that a
// lower unit's block seemed to have more of them, and 210 rows took longer than 240.
TEST(GemmDrift, ABlockHasItsOwnPartOfTheEpilogue) {
  GemmProblem problem = drifting_gemm(192, 64, 64);
  EpilogueStream table = problem.epilogue.front();
  table.store = false;
  table.height = 16;
  table.rows = Addressing::repeated;
  problem.epilogue.push_back(table);
  const GemmTile tile{.m = 64, .n = 64, .cluster_m = 2};
  L2Cache cache(Bytes(1 << 30));
  const auto waves = walk_gemm(problem, tile, schedule_gemm(192, 64, 64, 1, tile, 8, 8), cache);
  ASSERT_EQ(waves.size(), 1U);
  EXPECT_EQ(waves.front().block_epilogue, Bytes(2 * 64 * (64 + 16)));
}

}  // namespace
}  // namespace fuseline
