#include "sim/kernels/gemm_model.h"

#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <random>
#include <string>
#include <tuple>
#include <vector>

#include "base/error.h"
#include "sim/judge/tile_table.h"
#include "sim/kernels/gemm_library.h"
#include "sim/kernels/gemm_time.h"

namespace fuseline {
namespace {

Gpu hopper_like() {
  Gpu gpu;
  gpu.name = "test";
  gpu.sm_count = 132;
  gpu.sm_clock = Hertz(1.98e9);
  gpu.tensor_bf16 = FlopsPerSecond(989.4e12);
  gpu.tensor_fp8 = FlopsPerSecond(1978.9e12);
  gpu.hbm_bandwidth = BytesPerSecond(4.8e12);
  gpu.hbm_bandwidth_sustained = BytesPerSecond(4.5e12);
  gpu.l2_capacity = Bytes(60 << 20);
  gpu.l2_partitions = 2;
  gpu.l2_bandwidth = BytesPerSecond(9.7e12);
  gpu.tiny_kernel = microseconds(1.161);
  gpu.smem_per_block_max = Bytes(227 << 10);
  gpu.tdp = Watts(700);
  static const std::shared_ptr<const Architecture> hopper = load_architecture("hopper");
  set_architecture(gpu, hopper);
  return gpu;
}

GemmEstimate run(const GemmProblem& problem, const Gpu& gpu) {
  L2Cache cache(effective_l2_capacity(gpu));
  return simulate_gemm(problem, gpu, cache);
}

GemmProblem plain(std::int64_t m, std::int64_t n, std::int64_t k) {
  return plain_gemm(m, n, k, 1, 2, 3, 4);
}

Seconds total_time(const GemmEstimate& e) {
  return e.reduction ? e.time.time + e.reduction->time : e.time.time;
}

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

// A tile that the epilogue reads is fetched while the mainloop runs; a table is not.
TEST(OwnGemm, FetchedTilesHideBehindTheMainloop) {
  const Gpu gpu = hopper_like();
  Gpu exposed = gpu;
  exposed.constants.gemm.exposed_fetch_fraction = 1;
  GemmProblem problem = plain(128 * 66, 512, 1024);  // one tile per SM
  problem.library = false;
  problem.tile = GemmTile{.m = 128, .n = 256};
  problem.epilogue.push_back(
      {.matrix = {9, 128 * 66, 512, 2}, .height = 128 * 66, .width = 512, .origins = {}});
  const auto hidden = [&] {
    return (run(problem, exposed).time.time - run(problem, gpu).time.time);
  };
  const GemmConstants& c = gpu.constants.gemm;
  const double seconds =
      128 * 256 * 2 / (c.exposed_epilogue_bytes_per_cycle * gpu.sm_clock.value());
  EXPECT_NEAR(hidden().value(), (1 - c.exposed_fetch_fraction) * seconds, 1e-12);
  problem.epilogue.back().cols = Addressing::repeated;
  EXPECT_EQ(hidden(), Seconds());
}

TEST(OwnGemm, FunctionsOfAnEpilogueTakeIssueSlots) {
  const Gpu gpu = hopper_like();
  GemmProblem problem = plain(128 * 66, 512, 1024);  // one tile per SM
  const GemmTile tile{.m = 128, .n = 256};
  const auto cost = [&](double instructions) {
    problem.needs.instructions = 0;
    const Seconds without = quick_gemm_time(problem, tile, gpu);
    problem.needs.instructions = instructions;
    return quick_gemm_time(problem, tile, gpu) - without;
  };
  EXPECT_EQ(cost(24.5), Seconds()) << "a library has epilogues of its own";
  problem.library = false;
  const Constants& c = gpu.constants;
  const double slots = 128 * 256 * 24.5 / c.stream.issue_lanes;
  EXPECT_NEAR(cost(24.5).value(), slots / c.gemm.epilogue_issue_fraction / gpu.sm_clock.value(),
              1e-12);
}

// All threads of a tile run the epilogue's functions, also those of rows that the matrix has not.
TEST(OwnGemm, FunctionsOfAnEpilogueTakeAsLongWhereRowsAreFew) {
  const Gpu gpu = hopper_like();
  const GemmTile tile{.m = 64, .n = 128};
  const auto cost = [&](std::int64_t rows) {
    GemmProblem problem = plain(rows, 128 * 132, 1024);  // one tile per SM
    problem.library = false;
    const Seconds without = quick_gemm_time(problem, tile, gpu);
    problem.needs.instructions = 24.5;
    return quick_gemm_time(problem, tile, gpu) - without;
  };
  EXPECT_GT(cost(64), Seconds());
  EXPECT_NEAR(cost(1) / cost(64), 1, 1e-9);
}

// Tables come out of HBM for the first tile: 64 columns after 64 columns wait for theirs, once.
TEST(OwnGemm, TheFirstTileWaitsForItsTables) {
  const Gpu gpu = hopper_like();
  const auto wait_us = [&](std::int64_t rows, const GemmTile& tile, bool library) {
    GemmProblem problem = plain(rows, 128 * 66, 1024);
    problem.library = library;
    problem.tile = tile;
    const GemmEstimate bare = run(problem, gpu);
    const Seconds quick = quick_gemm_time(problem, tile, gpu);
    const auto spans_bare = wave_spans(problem, tile, bare.waves, gpu);
    problem.needs.loads_tables = true;
    const GemmEstimate loads = run(problem, gpu);
    const double us = to_us(loads.time.time - bare.time.time);
    EXPECT_NEAR(to_us(quick_gemm_time(problem, tile, gpu) - quick), us, 1e-9);
    const auto spans = wave_spans(problem, tile, loads.waves, gpu);
    EXPECT_NEAR(to_us(spans.front().epilogue - spans_bare.front().epilogue), us, 1e-9);
    EXPECT_EQ(spans.back().epilogue == spans_bare.back().epilogue, library || spans.size() > 1);
    return us;
  };
  const double ramp = to_us(gpu.constants.stream.ramp);
  ASSERT_GT(ramp, 0);
  EXPECT_NEAR(wait_us(1, {.m = 64, .n = 64}, false), ramp, 1e-9);
  EXPECT_NEAR(wait_us(1, {.m = 64, .n = 128}, false), 2 * ramp, 1e-9);
  EXPECT_NEAR(wait_us(2048, {.m = 128, .n = 256}, false), 4 * ramp, 1e-9) << "several waves";
  EXPECT_EQ(wait_us(1, {.m = 64, .n = 128}, true), 0) << "a library has no such epilogue";
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

TEST(OwnGemm, FewTilesOfFewRowsAreSplitWithinClusters) {
  const Gpu gpu = hopper_like();
  GemmProblem problem = plain(1, 4096, 4096);
  problem.library = false;
  problem.needs.row_partial_cols = 128;  // 32 tiles for 132 SMs
  const GemmTile tile = choose_tile(problem, gpu);
  EXPECT_GT(tile.cluster_k, 1);
  EXPECT_EQ(tile.split_k, 1);
  GemmTile whole = tile;
  whole.cluster_k = 1;
  EXPECT_LT(quick_gemm_time(problem, tile, gpu), quick_gemm_time(problem, whole, gpu));
  // No clusters that would wait for others, and no parts of K of a few steps.
  for (const auto& [m, n, k] : {std::array{1, 22016, 4096}, {2048, 4096, 4096}, {1, 4096, 448}}) {
    GemmProblem other = plain(m, n, k);
    other.library = false;
    const GemmTile t = choose_tile(other, gpu);
    EXPECT_LE((n + t.n - 1) / t.n * t.cluster_k, t.cluster_k > 1 ? 132 : n) << n;
    EXPECT_GE(k, t.cluster_k > 1 ? 4 * 64 * t.cluster_k : 0) << k;
    if (m > 1) {
      EXPECT_EQ(t.cluster_k, 1);
    }
  }
}

// 264 rows are five tiles of 64, or two of 144: a turned tile pays for the rows that there are. The
// times are of one H200 (cuda/bench/results/gemm_shapes.csv), of the fastest turned tile and of the
// fastest upright tile that was measured, which had 128 rows. 2,100 rows fill 32.8 tiles of 64
// rows, which waste none either, so the turned tile must beat only the higher ones by as much.
TEST(OwnGemm, RowsThatFillNoTileOf64AreTurned) {
  const Gpu gpu = load_gpu("h200");
  struct Case {
    std::int64_t m, n, k;
    bool fill_low_tiles;
    double turned_us, upright_us;
  };
  for (const Case& c : {Case{264, 14336, 4096, false, 49.6, 86.5},
                        {2100, 3072, 3072, true, 52.5, 63.8},
                        {400, 8192, 8192, false, 75.2, 86.7}}) {
    GemmProblem problem = plain_gemm(c.m, c.n, c.k, 0, 1, 2, 3);
    problem.library = false;
    problem.needs.only_stores = true;
    const GemmTile chosen = choose_tile(problem, gpu);
    EXPECT_TRUE(chosen.turned()) << c.m;
    EXPECT_NEAR(to_us(quick_gemm_time(problem, chosen, gpu)), c.turned_us, 0.09 * c.turned_us);
    const auto upright = [&](bool low) {
      Gpu before = gpu;
      auto menu = std::make_shared<Architecture>(*gpu.architecture);
      std::erase_if(menu->tiles.own,
                    [&](const GemmTile& tile) { return tile.turned() || (!low && tile.m <= 64); });
      before.architecture = menu;
      return quick_gemm_time(problem, choose_tile(problem, before), gpu);
    };
    EXPECT_LT(quick_gemm_time(problem, chosen, gpu) * 1.1, upright(!c.fill_low_tiles)) << c.m;
    EXPECT_LT(quick_gemm_time(problem, chosen, gpu), upright(true)) << c.m;
    const GemmTile wide{.m = 128, .n = 256, .stages = 4, .cluster_m = 2};
    EXPECT_NEAR(to_us(quick_gemm_time(problem, wide, gpu)), c.upright_us, 0.09 * c.upright_us);
  }
}

TEST(OwnGemm, SumsThatChangeTheirThreadsCostTime) {
  const Gpu gpu = load_gpu("h200");
  GemmProblem problem = plain_gemm(2100, 3072, 3072, 0, 1, 2, 3);
  problem.library = false;
  const GemmTile turned{.m = 192, .n = 128, .cluster_n = 2},
      plain{.m = 128, .n = 128, .cluster_m = 2};
  problem.needs.only_stores = false;
  Gpu free = gpu;
  free.constants.gemm.turn_bytes_per_cycle = 1e15;
  const auto cost = [&](const GemmTile& tile) {
    return quick_gemm_time(problem, tile, gpu) - quick_gemm_time(problem, tile, free);
  };
  // 2 waves of a tile's numbers in fp32, written and read.
  const double bytes = 2.0 * 2 * 4 * 192 * 128;
  EXPECT_NEAR(cost(turned).value(),
              bytes / gpu.constants.gemm.turn_bytes_per_cycle / gpu.sm_clock.value(), 1e-12);
  EXPECT_EQ(cost(plain), Seconds());
}

TEST(OwnGemm, OperandsThatNoTurnedTileTakesKeepTheOthers) {
  const Gpu gpu = load_gpu("h200");
  std::mt19937 random(5);
  int turned = 0;
  for (int trial = 0; trial < 100; ++trial) {
    const auto size = [&](std::int64_t most) {
      return 8 * (1 + static_cast<std::int64_t>(random()) % (most / 8));
    };
    GemmProblem problem = plain_gemm(size(4000), size(9000), size(6000), 0, 1, 2, 3);
    problem.library = false;
    problem.needs.only_stores = true;
    const GemmTile tile = choose_tile(problem, gpu);
    if (tile.turned()) {
      ++turned;
      EXPECT_GT(problem.n, tile.n) << "a cluster has two blocks";
    }
    GemmProblem transposed = problem;
    transposed.a.transposed = true;
    EXPECT_FALSE(choose_tile(transposed, gpu).turned());
    GemmProblem apart = problem;
    apart.needs.rows_in_runs = true;
    EXPECT_FALSE(choose_tile(apart, gpu).turned());
    GemmProblem groups = problem;
    groups.groups = {problem.m / 2, problem.m - problem.m / 2};
    EXPECT_FALSE(choose_tile(groups, gpu).turned());
    GemmProblem batch = problem;
    batch.batch = 3;
    EXPECT_FALSE(choose_tile(batch, gpu).turned());
  }
  EXPECT_GT(turned, 20);
}

TEST(OwnGemm, PartsOfKCostTheirExchange) {
  const Gpu gpu = hopper_like();
  for (const auto& [m, rows] : {std::pair{16, 16}, {17, 32}, {64, 64}}) {  // whole warps send
    GemmProblem problem = plain(m, 2048, 4096);
    problem.library = false;
    problem.tile = GemmTile{.m = 64, .n = 128};
    const Seconds alone = run(problem, gpu).time.epilogue;
    problem.tile->cluster_k = 4;  // 16 tiles: one wave of clusters
    const Seconds exchange(3 * rows * 128 * 4 /
                           (gpu.constants.gemm.sm_fetch_bytes_per_cycle * gpu.sm_clock.value()));
    EXPECT_NEAR(to_us(run(problem, gpu).time.epilogue - alone),
                to_us(gpu.constants.gemm.cluster_wave + exchange), 1e-6)
        << m;
  }
}

TEST(OwnGemm, ClustersAlongKStartAnewInEachWaveButTheFirst) {
  Gpu gpu = load_gpu("h200"), free = gpu;
  free.constants.gemm.cluster_start = Seconds();
  // 39 clusters of three have place on the GPU at once.
  for (const auto& [n, waves] : {std::pair{64 * 39, 1}, {64 * 40, 2}, {64 * 80, 3}}) {
    GemmProblem problem = plain(16, n, 2048);
    problem.library = false;
    problem.tile = GemmTile{.m = 64, .n = 64, .cluster_k = 3};
    EXPECT_NEAR(to_us(run(problem, gpu).time.time - run(problem, free).time.time),
                to_us((waves - 1.0) * gpu.constants.gemm.cluster_start), 1e-6)
        << n;
    EXPECT_NEAR(to_us(quick_gemm_time(problem, *problem.tile, gpu) -
                      quick_gemm_time(problem, *problem.tile, free)),
                to_us((waves - 1.0) * gpu.constants.gemm.cluster_start), 1e-6)
        << n;
  }
}

// Measured on one H200 (cuda/bench/results/tiles-h200-unseen.csv): 10.4 us without a cluster, 8.5
// in clusters of two and 8.1 in clusters of three; at 5,120 columns, where clusters take two and
// three waves, 8.3, 12.0 and 13.9.
TEST(OwnGemm, FewTilesOfADecodedTokenGoIntoClustersAlongKAndManyDoNot) {
  const Gpu gpu = load_gpu("h200");
  for (const std::int64_t rows : {16, 32}) {
    EXPECT_EQ(choose_tile(own_plain_gemm(rows, 2048, 4096), gpu).cluster_k, 3) << rows;
    EXPECT_EQ(choose_tile(own_plain_gemm(rows, 5120, 2048), gpu).cluster_k, 1) << rows;
  }
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

TEST(OwnGemm, AMenuWithoutAFittingTileIsTheFilesMistake) {
  Gpu gpu = hopper_like();
  Architecture poor = *gpu.architecture;
  poor.tiles.own = {{.m = 64, .n = 64}};
  gpu.architecture = std::make_shared<const Architecture>(poor);
  GemmProblem problem = plain(8, 4096, 4096);
  problem.library = false;
  problem.needs.reduces_columns = true;  // wants 128 rows
  EXPECT_THROW(choose_tile(problem, gpu), InputError);
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
