#include "sim/kernels/gemm_model.h"

#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <random>
#include <string>

#include "sim/kernels/gemm_library.h"
#include "sim/kernels/gemm_time.h"
#include "tests/sim/kernels/gemm_cases.h"

namespace fuseline {
namespace {

using test::hopper_like;
using test::plain;
using test::run;
using test::total_time;

TEST(GemmModel, NeverBeatsTheTensorRateOrTheMemory) {
  const Gpu gpu = hopper_like();
  std::mt19937 random(5);
  for (int trial = 0; trial < 40; ++trial) {
    const auto pick = [&random] { return std::int64_t{1} << (random() % 13); };
    const std::int64_t m = pick(), n = 8 * pick(), k = 8 * pick();
    if (m * n * k > (std::int64_t{1} << 36)) continue;
    const GemmEstimate e = run(plain(m, n, k), gpu);
    EXPECT_EQ(e.flops, Flops(2 * m * n * k));
    // At the boost clock the tensor cores exceed the datasheet rate by 8 %, but the mainloop's
    // fraction keeps it below.
    EXPECT_GT(total_time(e), e.flops / gpu.tensor_bf16);
    EXPECT_GT(total_time(e), Bytes(2 * (m * k + n * k)) / gpu.hbm_bandwidth);
    EXPECT_GE(e.hbm.read, Bytes(2 * (m * k + n * k)));
    EXPECT_GE(total_time(e), gpu.tiny_kernel);
  }
}

// With the tiles that the library chose for the slower memory: as a what-if of a GPU has it.
TEST(GemmModel, MoreBandwidthIsNeverSlower) {
  for (const auto& [m, n, k] : {std::array<std::int64_t, 3>{1, 4096, 4096},
                                {512, 11008, 4096},
                                {2048, 4096, 4096},
                                {16, 1600, 6400}}) {
    const Gpu gpu = hopper_like();
    Gpu faster = gpu;
    faster.chosen_for = std::make_shared<const Gpu>(gpu);
    faster.hbm_bandwidth_sustained *= 1.5;
    EXPECT_LE(total_time(run(plain(m, n, k), faster)), total_time(run(plain(m, n, k), gpu)));
    faster.hbm_bandwidth_sustained = gpu.hbm_bandwidth_sustained;
    faster.l2_bandwidth *= 1.5;
    EXPECT_LE(total_time(run(plain(m, n, k), faster)), total_time(run(plain(m, n, k), gpu)));
  }
}

TEST(GemmModel, MoreDepthTakesLonger) {
  const Gpu gpu = hopper_like();
  for (const std::int64_t m : {1, 64, 300, 2048}) {
    Seconds before;
    for (const std::int64_t k : {512, 1024, 2048, 4096, 8192}) {
      const Seconds time = total_time(run(plain(m, 4096, k), gpu));
      EXPECT_GT(time, before) << m << " " << k;
      before = time;
    }
  }
}

TEST(GemmModel, DecodeIsBoundByMemoryAndPrefillByTheTensorCores) {
  const Gpu gpu = hopper_like();
  EXPECT_EQ(run(plain(1, 22016, 4096), gpu).time.bound, Bound::hbm);
  EXPECT_EQ(run(plain(2048, 22016, 4096), gpu).time.bound, Bound::tensor);
  EXPECT_EQ(run(plain(1, 64, 64), gpu).time.bound, Bound::launch);
}

TEST(GemmModel, AWarmInputIsNotReadFromMemoryAgain) {
  // Given the activations that the kernel before wrote, still in L2,
  const Gpu gpu = hopper_like();
  const GemmProblem problem = plain(512, 2048, 4096);
  L2Cache cache(effective_l2_capacity(gpu));
  cache.write(problem.a.matrix, 0, 512, 0, 4096);
  cache.take_traffic();
  // when the GEMM runs, then only weights are read.
  const GemmEstimate e = simulate_gemm(problem, gpu, cache);
  EXPECT_EQ(e.hbm.read, Bytes(2 * 2048 * 4096));
}

TEST(GemmModel, ASplitGemmLeavesItsOutputInTheCacheAndNoPartials) {
  const Gpu gpu = hopper_like();
  GemmProblem problem = plain(16, 1024, 16384);
  problem.tile = GemmTile{.m = 16, .n = 64, .split_k = 8};
  L2Cache cache(effective_l2_capacity(gpu));
  const GemmEstimate e = simulate_gemm(problem, gpu, cache);
  ASSERT_TRUE(e.reduction.has_value());
  EXPECT_EQ(e.reduction->l2, Bytes(8 * 4 * 16 * 1024 + 2 * 16 * 1024));
  EXPECT_EQ(cache.resident(3), Bytes(2 * 16 * 1024));
  EXPECT_EQ(cache.resident(4), Bytes(0));
}

TEST(GemmModel, EpilogueStreamsCostTime) {
  // maths.md: each extra M × N stream of a 128 × 256 tile costs about 2 us when nothing overlaps.
  const Gpu gpu = hopper_like();
  GemmProblem problem = plain(128 * 66, 512, 1024);  // one tile per SM
  problem.library = false;
  problem.tile = GemmTile{.m = 128, .n = 256};
  const Seconds bare = run(problem, gpu).time.time;
  problem.epilogue.push_back({.matrix = {9, 128 * 66, 512, 2},
                              .height = 128 * 66,
                              .width = 512,
                              .store = true,
                              .origins = {}});
  const Seconds stored = run(problem, gpu).time.time - bare;
  EXPECT_GT(to_us(stored), 1.0);
  EXPECT_LT(to_us(stored), 3.0);
}

TEST(GemmModel, ALowerClockSlowsTheTensorPartOnly) {
  const Gpu gpu = hopper_like();
  const GemmProblem dense = plain(2048, 4096, 4096), thin = plain(1, 22016, 4096);
  const GemmEstimate e = run(dense, gpu), t = run(thin, gpu);
  const double slower = time_gemm(dense, e.tile, e.waves, gpu, 0.8).time / e.time.time;
  EXPECT_GT(slower, 1.2);
  EXPECT_LE(slower, 1.25);
  EXPECT_LT(time_gemm(thin, t.tile, t.waves, gpu, 0.8).time / t.time.time, 1.02);
}

TEST(GemmLibrary, ThinProblemsGetTilesNoWiderThanNeeded) {
  const Gpu gpu = hopper_like();
  EXPECT_EQ(choose_tile(plain(1, 12288, 4096), gpu).m, 8);
  EXPECT_LE(choose_tile(plain(16, 12288, 4096), gpu).m, 16);
  EXPECT_GE(choose_tile(plain(4096, 12288, 4096), gpu).m, 128);
}

TEST(GemmLibrary, AFewOutputTilesAreSplitAlongK) {
  const Gpu gpu = hopper_like();
  EXPECT_GT(choose_tile(plain(16, 256, 65536), gpu).split_k, 1);
  EXPECT_EQ(choose_tile(plain(4096, 12288, 4096), gpu).split_k, 1);
}

// 140 tiles are two waves of an A100's 108 SMs, the second one nearly empty. In parts of K they are
// more waves of less work, the last one fuller.
TEST(GemmLibrary, ALastWaveOfFewTilesIsFilledByPartsOfKWhereTheLibraryDoesSo) {
  Gpu gpu = load_gpu("a100-sxm-80gb");
  GemmProblem problem = plain(1792, 1280, 16384);
  set_constant(gpu, "gemm.split_waves", 1);
  const GemmTile whole = choose_tile(problem, gpu);
  EXPECT_EQ(whole.split_k, 1);
  set_constant(gpu, "gemm.split_waves", 8);
  const GemmTile parts = choose_tile(problem, gpu);
  EXPECT_GT(parts.split_k, 1);
  EXPECT_LT(quick_gemm_time(problem, parts, gpu), quick_gemm_time(problem, whole, gpu));
}

TEST(GemmLibrary, AFixedTileIsKept) {
  const Gpu gpu = hopper_like();
  GemmProblem problem = plain(100, 100, 100);
  problem.tile = GemmTile{.m = 32, .n = 96, .k = 32, .stages = 2};
  EXPECT_EQ(choose_tile(problem, gpu), *problem.tile);
}

TEST(GemmLibrary, ArchitecturesWithoutClustersHaveNoTilesThatNeedThem) {
  for (const std::string& name : architecture_names()) {
    const auto architecture = load_architecture(name);
    if (architecture->features.contains(Feature::clusters)) continue;
    for (const auto* tiles : {&architecture->tiles.library, &architecture->tiles.own}) {
      for (const GemmTile& tile : *tiles) EXPECT_EQ(tile.cluster(), 1) << name;
    }
  }
}

// A menu may hold no tile that a habit of the library likes.
TEST(GemmLibrary, AMenuOfOneTileIsTaken) {
  Gpu gpu = hopper_like();
  Architecture poor = *gpu.architecture;
  poor.tiles.library = {{.m = 160, .n = 24}};
  gpu.architecture = std::make_shared<const Architecture>(poor);
  EXPECT_EQ(choose_tile(plain(8, 4096, 4096), gpu).m, 160);
}

// Thread blocks wait for what they load, and for nothing that L2 writes back.
TEST(GemmTime, FewThreadBlocksSlowDownReadsAndNoWrites) {
  const Gpu gpu = hopper_like();
  const GemmConstants& constants = gpu.constants.gemm;
  const Bytes bytes(1 << 30);
  const auto hbm = [&](std::int64_t blocks, const HbmTraffic& traffic) {
    GemmWave wave;
    wave.blocks = blocks;
    wave.k_steps = 1;
    wave.hbm = traffic;
    return time_gemm(plain(512, 512, 64), {.m = 128, .n = 128}, {wave}, gpu).hbm.value();
  };
  const double full = bytes / (gpu.hbm_bandwidth_sustained * constants.hbm_fraction) / Seconds(1);
  const double needed = gpu.hbm_bandwidth_sustained.value() / (constants.stream_gb_per_s * 1e9);
  for (const std::int64_t blocks : {1, 13, 132}) {
    const double slower =
        std::pow(needed / static_cast<double>(blocks), constants.concurrency_exponent);
    EXPECT_NEAR(hbm(blocks, {.read = bytes, .write = {}}), full * slower, 1e-9 * full) << blocks;
    EXPECT_NEAR(hbm(blocks, {.read = {}, .write = bytes}), full, 1e-9 * full) << blocks;
  }
}

// Found by the property run: with more rows of x, all of them in L2, thread blocks seemed to stream
// more from HBM, and the same weights came faster.
TEST(GemmTime, WhatL2HoldsKeepsNoStreamOfHbmBusy) {
  const Gpu gpu = hopper_like();
  GemmWave wave;
  wave.blocks = 8;
  wave.k_steps = 1;
  wave.operands = Bytes(8 << 20);
  wave.distinct = Bytes(2 << 20);
  wave.hbm.read = Bytes(1 << 20);
  const auto hbm = [&] {
    return time_gemm(plain(512, 512, 64), {.m = 128, .n = 128}, {wave}, gpu).hbm;
  };
  const Seconds before = hbm();
  wave.distinct = Bytes(3 << 20);
  EXPECT_EQ(hbm(), before);
  // What nobody reads from HBM takes no time of it.
  wave.hbm.read = Bytes();
  EXPECT_EQ(hbm(), Seconds());
}

// Rows that are no multiple of 16 bytes rule out bulk copies: GPT-2's LM head, 50,257 columns.
TEST(GemmTime, UnalignedRowsAreSeveralTimesSlowerThanPaddedOnes) {
  const Gpu gpu = hopper_like();
  const auto time = [&](std::int64_t m, std::int64_t n) {
    const GemmProblem problem = plain_gemm(m, n, 1600, 1, 2, 3, 4);
    return quick_gemm_time(problem, choose_tile(problem, gpu), gpu);
  };
  EXPECT_GT(time(2048, 50257) / time(2048, 50264), 4.0);
  EXPECT_GT(time(16, 50257) / time(16, 50264), 2.0);
  EXPECT_NEAR(time(1, 50257) / time(1, 50264), 1.0, 0.02);  // one row is contiguous
}

}  // namespace
}  // namespace fuseline
