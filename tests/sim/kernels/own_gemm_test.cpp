// GEMMs of our own mainloop: what their epilogues cost, and which tiles they get.
#include "sim/kernels/gemm_model.h"

#include <gtest/gtest.h>

#include <memory>
#include <random>
#include <utility>
#include <vector>

#include "base/error.h"
#include "sim/judge/tile_table.h"
#include "sim/kernels/gemm_library.h"
#include "sim/kernels/gemm_time.h"
#include "tests/sim/kernels/gemm_cases.h"

namespace fuseline {
namespace {

using test::hopper_like;
using test::plain;
using test::run;

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
// rows, which waste none either, so the turned tile must beat only the higher ones by as much. Of
// 264 rows the fifth tile of 64 has 8: such tiles took 70 us and more (2026-11-28), and are
// predicted 17 % too fast, for the blocks that load zeros fall behind their neighbours.
TEST(OwnGemm, RowsThatFillNoTileOf64AreTurned) {
  const Gpu gpu = load_gpu("h200");
  struct Case {
    std::int64_t m, n, k;
    bool fill_low_tiles;
    double turned_us, upright_us;
  };
  for (const Case& c : {Case{264, 14336, 4096, true, 49.6, 86.5},
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

}  // namespace
}  // namespace fuseline
