#include "sim/kernels/gemm_traffic.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <random>
#include <set>
#include <tuple>

namespace fuseline {
namespace {

constexpr std::uint32_t kA = 1, kB = 2, kOut = 3, kWorkspace = 4;

struct Totals {
  Bytes operands, epilogue, read, write;
};

Totals total(const std::vector<GemmWave>& waves) {
  Totals t;
  for (const GemmWave& wave : waves) {
    t.operands += wave.operands;
    t.epilogue += wave.epilogue;
    t.read += wave.hbm.read;
    t.write += wave.hbm.write;
  }
  return t;
}

std::vector<GemmWave> walk(const GemmProblem& p, const GemmTile& tile, std::int64_t blocks,
                           L2Cache& cache) {
  return walk_gemm(p, tile, schedule_gemm(p.m, p.n, p.k, p.batch, tile, blocks, 4), cache);
}

TEST(GemmTraffic, AnEndlessCacheReadsEachOperandOnceAndKeepsTheOutputDirty) {
  // Odd sizes and a tile whose edge cuts chunks: 300 × 500 × 200, tiles of 96 × 80.
  const GemmProblem problem = plain_gemm(300, 500, 200, kA, kB, kOut, kWorkspace);
  const GemmTile tile{.m = 96, .n = 80, .cluster_m = 2};
  L2Cache cache(Bytes(1 << 30));
  const Totals t = total(walk(problem, tile, 8, cache));
  EXPECT_EQ(t.read, Bytes(2 * (300 * 200 + 500 * 200)));
  EXPECT_EQ(t.write, Bytes(0));
  EXPECT_EQ(cache.dirty(), Bytes(2 * 300 * 500));
  EXPECT_EQ(t.epilogue, Bytes(2 * 300 * 500));
}

TEST(GemmTraffic, WithoutACacheEachWaveReadsItsOwnPanels) {
  // 4 × 2 tiles of 64 × 64 over k = 128, two blocks at once. Units in groups of 4 rows of tiles:
  // waves {rows 0,1; col 0}, {2,3; 0}, {0,1; 1}, {2,3; 1}, each with 2 row panels and 1 column
  // panel.
  const GemmProblem problem = plain_gemm(256, 128, 128, kA, kB, kOut, kWorkspace);
  const GemmTile tile{.m = 64, .n = 64};
  L2Cache cache(Bytes(0));
  const auto waves = walk(problem, tile, 2, cache);
  ASSERT_EQ(waves.size(), 4U);
  for (const GemmWave& wave : waves) {
    EXPECT_EQ(wave.hbm.read, Bytes(3 * 64 * 128 * 2));
    EXPECT_EQ(wave.hbm.write, Bytes(2 * 64 * 64 * 2));
    EXPECT_EQ(wave.operands, Bytes(2 * (64 + 64) * 128 * 2));
    EXPECT_EQ(wave.blocks, 2);
    EXPECT_EQ(wave.k_steps, 2);
  }
}

ChunkPart whole_chunk(const CachedMatrix& m, std::int64_t row_block, std::int64_t col_block) {
  const auto extent = [](std::int64_t size, std::int64_t block) {
    return static_cast<std::uint8_t>(std::min(kChunkEdge, size - block * kChunkEdge));
  };
  return {0, extent(m.rows, row_block), 0, extent(m.cols, col_block)};
}

// Chunk by chunk with sets and maps: which chunks a wave asks for in which step, by the definition.
Totals brute_force(const GemmProblem& p, const GemmTile& tile, std::int64_t blocks,
                   L2Cache& cache) {
  const GemmSchedule schedule = schedule_gemm(p.m, p.n, p.k, p.batch, tile, blocks, 4);
  Totals t;
  const auto count = schedule.units.size();
  const auto per_wave = static_cast<std::size_t>(schedule.units_per_wave);
  for (std::size_t first = 0; first < count; first += per_wave) {
    const std::size_t last = std::min(count, first + per_wave);
    for (std::int64_t k = 0; k < p.k; k += kChunkEdge) {
      std::set<std::tuple<bool, std::int64_t>> seen;
      for (const bool of_b : {false, true}) {
        for (std::size_t i = first; i < last; ++i) {
          const GemmUnit& u = schedule.units[i];
          const std::int64_t begin = of_b ? u.n_begin : u.m_begin;
          const std::int64_t end = of_b ? u.n_end : u.m_end;
          for (std::int64_t row = begin; row < end; ++row) seen.insert({of_b, row / kChunkEdge});
        }
      }
      for (const auto& [of_b, block] : seen) {
        const CachedMatrix& m = of_b ? p.b.matrix : p.a.matrix;
        cache.read(ChunkKey{m.tensor, static_cast<std::uint32_t>(block),
                            static_cast<std::uint32_t>(k / kChunkEdge)},
                   whole_chunk(m, block, k / kChunkEdge), m.element);
      }
    }
    for (std::size_t i = first; i < last; ++i) {
      const GemmUnit& u = schedule.units[i];
      const CachedMatrix out{kOut, p.m, p.n, 2};
      for (std::int64_t r = 0; r < out.row_blocks(); ++r) {
        for (std::int64_t c = 0; c < out.col_blocks(); ++c) {
          const std::int64_t row = r * kChunkEdge, col = c * kChunkEdge;
          const std::int64_t top = std::max(row, u.m_begin), left = std::max(col, u.n_begin);
          const std::int64_t bottom = std::min(row + kChunkEdge, u.m_end);
          const std::int64_t right = std::min(col + kChunkEdge, u.n_end);
          if (top >= bottom || left >= right) continue;
          const auto at = [](std::int64_t offset) { return static_cast<std::uint8_t>(offset); };
          cache.write(ChunkKey{kOut, static_cast<std::uint32_t>(r), static_cast<std::uint32_t>(c)},
                      {at(top - row), at(bottom - row), at(left - col), at(right - col)}, 2);
        }
      }
    }
  }
  const HbmTraffic traffic = cache.take_traffic();
  t.read = traffic.read;
  t.write = traffic.write;
  return t;
}

TEST(GemmTraffic, EqualsABruteForceWalkOnRandomShapes) {
  std::mt19937 random(3);
  const auto pick = [&random](std::int64_t low, std::int64_t high) {
    return low + static_cast<std::int64_t>(random() % static_cast<unsigned>(high - low + 1));
  };
  for (int trial = 0; trial < 30; ++trial) {
    const GemmProblem p =
        plain_gemm(pick(1, 700), pick(1, 700), pick(1, 500), kA, kB, kOut, kWorkspace);
    const GemmTile tile{.m = pick(1, 4) * 48, .n = pick(1, 4) * 48, .cluster_n = pick(1, 2)};
    const std::int64_t blocks = pick(1, 12);
    const Bytes capacity(pick(0, 60) * 8192);
    L2Cache cache(capacity), expected_cache(capacity);
    const Totals t = total(walk(p, tile, blocks, cache));
    const Totals expected = brute_force(p, tile, blocks, expected_cache);
    EXPECT_EQ(t.read, expected.read) << "trial " << trial;
    EXPECT_EQ(t.write, expected.write) << "trial " << trial;
    EXPECT_EQ((t.write + cache.dirty()), (expected.write + expected_cache.dirty()));
    EXPECT_EQ(t.write + cache.dirty(), Bytes(2 * p.m * p.n));
  }
}

// 67 million tiles: their number must not decide how long the count takes.
TEST(GemmTraffic, RequestedBytesOfAHugeGemmAreCountedByRowsAndColumns) {
  const std::int64_t m = (1 << 20) - 3;
  const std::int64_t n = (1 << 20) - 5;
  const GemmProblem problem = plain_gemm(m, n, 64, kA, kB, kOut, kWorkspace);
  const GemmRequested requested = requested_bytes(problem, {.m = 128, .n = 128});
  ASSERT_EQ(requested.epilogue.size(), 1U);
  EXPECT_EQ(requested.epilogue[0], checked_product<Bytes>(m, n, 2));
}

TEST(GemmTraffic, MulticastCountsTheSharedOperandOnce) {
  // One cluster of two tiles along M, 64 × 64 each: A twice, B once.
  const GemmProblem problem = plain_gemm(128, 64, 64, kA, kB, kOut, kWorkspace);
  L2Cache cache(Bytes(1 << 20));
  const Totals t = total(walk(problem, {.m = 64, .n = 64, .cluster_m = 2}, 2, cache));
  EXPECT_EQ(t.operands, Bytes(2 * 64 * (128 + 64)));
}

TEST(GemmTraffic, APredecessorsOutputIsFoundInTheCacheAndItsDirtyBytesAreWrittenHere) {
  // Given an input that the kernel before wrote, and a cache that holds it but not the weights,
  const GemmProblem problem = plain_gemm(64, 640, 64, kA, kB, kOut, kWorkspace);
  L2Cache cache(Bytes(4 * 8192));
  cache.write(problem.a.matrix, 0, 64, 0, 64);
  cache.take_traffic();
  // when the GEMM runs, then it reads the weights only and pushes the input out.
  const Totals t = total(walk(problem, {.m = 64, .n = 64}, 1, cache));
  EXPECT_EQ(t.read, Bytes(640 * 64 * 2));
  EXPECT_EQ(t.write + cache.dirty(), Bytes(8192 + 64 * 640 * 2));
}

TEST(GemmTraffic, PartsOfTheLastRoundMoveTheirSumsThroughL2) {
  // Given 5 tiles of 64 × 64, the last 45 columns wide, on 4 blocks: tile 0 is alone in a round.
  const GemmProblem problem = plain_gemm(64, 4 * 64 + 45, 512, kA, kB, kOut, kWorkspace);
  const GemmTile whole{.m = 64, .n = 64};
  GemmTile parts = whole;
  parts.tail_parts = 3;
  L2Cache cache(Bytes(1 << 24)), same(Bytes(1 << 24));
  const std::vector<GemmWave> waves = walk(problem, parts, 4, cache);
  const Totals t = total(waves), want = total(walk(problem, whole, 4, same));
  // then its three parts are a round of their own, of a third of the steps each,
  ASSERT_EQ(waves.size(), 2U);
  EXPECT_EQ(waves[0].blocks, 3);
  EXPECT_EQ(waves[0].k_steps, 3);  // of 8
  EXPECT_EQ(waves[1].k_steps, 8);
  // operands and HBM reads are as before, and two parts' sums are written and read in fp32:
  EXPECT_EQ(t.operands, want.operands);
  EXPECT_EQ(t.read, want.read);
  EXPECT_EQ(t.epilogue, want.epilogue + Bytes(2 * 2 * 64 * 64 * 4));
  // they stay in L2, dirty, behind the output.
  EXPECT_EQ(cache.dirty(), same.dirty() + Bytes(2 * 64 * 64 * 4));
}

// Of our own mainloop, where the epilogue only stores: each part of a tile leaves its sums and adds
// up a share of all parts'.
TEST(GemmTraffic, PartsThatAddUpTogetherEachMoveATile) {
  GemmProblem problem = plain_gemm(64, 4 * 64 + 45, 512, kA, kB, kOut, kWorkspace);
  problem.library = false;
  problem.needs.only_stores = true;
  const GemmTile whole{.m = 64, .n = 64};
  GemmTile parts = whole;
  parts.tail_parts = 3;
  L2Cache cache(Bytes(1 << 24)), same(Bytes(1 << 24));
  const std::vector<GemmWave> waves = walk(problem, parts, 4, cache);
  const Totals t = total(waves), want = total(walk(problem, whole, 4, same));
  constexpr Bytes kTileSums(64 * 64 * 4), kResult(64 * 64 * 2);
  EXPECT_EQ(t.operands, want.operands);
  EXPECT_EQ(t.read, want.read);
  EXPECT_EQ(t.epilogue, want.epilogue + kTileSums * (3 * 2));
  EXPECT_EQ(cache.dirty(), same.dirty() + kTileSums * 3);
  ASSERT_EQ(waves.size(), 2U);
  EXPECT_EQ(waves[0].block_sums, kTileSums * 2);
  EXPECT_EQ(waves[1].block_sums, Bytes());
  // No block stores the whole tile.
  EXPECT_EQ(waves[0].block_epilogue, kTileSums * 2 + Bytes(kResult.value() / 3));
  EXPECT_EQ(waves[1].block_epilogue, kResult);
}

TEST(GemmTraffic, SplitKStoresFp32PartialsAndReadsTheOperandsOnce) {
  const GemmProblem problem = plain_gemm(16, 128, 512, kA, kB, kOut, kWorkspace);
  L2Cache cache(Bytes(1 << 24));
  const Totals t = total(walk(problem, {.m = 16, .n = 64, .split_k = 4}, 8, cache));
  EXPECT_EQ(t.read, Bytes(2 * 512 * (16 + 128)));
  EXPECT_EQ(t.epilogue, Bytes(4 * 4 * 16 * 128));
  EXPECT_EQ(cache.resident(kWorkspace), Bytes(4 * 4 * 16 * 128));
  EXPECT_EQ(cache.resident(kOut), Bytes(0));
}

TEST(GemmTraffic, AClusterAlongKSharesTheStepsAndStoresNoPartials) {
  const GemmProblem problem = plain_gemm(16, 128, 512, kA, kB, kOut, kWorkspace);
  L2Cache cache(Bytes(1 << 24));
  const auto waves = walk(problem, {.m = 64, .n = 64, .cluster_k = 4}, 8, cache);
  const Totals t = total(waves);
  EXPECT_EQ(t.read, Bytes(2 * 512 * (16 + 128)));
  EXPECT_EQ(t.operands, Bytes(2 * 512 * (2 * 16 + 128)));
  EXPECT_EQ(t.epilogue, Bytes(2 * 16 * 128));
  EXPECT_EQ(cache.resident(kWorkspace), Bytes(0));
  ASSERT_EQ(waves.size(), 1U);
  EXPECT_EQ(waves.front().blocks, 8);
  EXPECT_EQ(waves.front().k_steps, 2);
}

TEST(GemmTraffic, EpilogueStreamsAreAddressedByTheTile) {
  // Given SwiGLU's epilogue: a residual tile, a row vector over all rows, a RoPE table that repeats
  // every 32 rows, and a store of half width,
  GemmProblem problem = plain_gemm(128, 256, 64, kA, kB, kOut, kWorkspace);
  problem.epilogue[0].matrix.cols = problem.epilogue[0].width = 128;
  problem.epilogue.push_back(
      {.matrix = {10, 128, 256, 2}, .height = 128, .width = 256, .origins = {}});
  problem.epilogue.push_back({.matrix = {11, 1, 256, 2}, .height = 1, .width = 256, .origins = {}});
  EpilogueStream table{.matrix = {12, 32, 64, 2}, .height = 32, .width = 64, .origins = {}};
  table.rows = table.cols = Addressing::repeated;
  problem.epilogue.push_back(table);
  const GemmTile tile{.m = 64, .n = 128};
  const GemmRequested requested = requested_bytes(problem, tile);
  EXPECT_EQ(requested.a, Bytes(128 * 64 * 2 * 2));  // two column tiles
  EXPECT_EQ(requested.b, Bytes(256 * 64 * 2 * 2));  // two row tiles
  EXPECT_EQ(requested.epilogue[0], Bytes(128 * 128 * 2));
  EXPECT_EQ(requested.epilogue[1], Bytes(128 * 256 * 2));
  EXPECT_EQ(requested.epilogue[2], Bytes(2 * 256 * 2));      // once per row of tiles
  EXPECT_EQ(requested.epilogue[3], Bytes(4 * 32 * 64 * 2));  // the whole table per tile
  L2Cache cache(Bytes(1 << 24));
  const Totals t = total(walk(problem, tile, 4, cache));
  EXPECT_EQ(t.epilogue, requested.epilogue[0] + requested.epilogue[1] + requested.epilogue[2] +
                            requested.epilogue[3]);
  EXPECT_EQ(cache.dirty(), Bytes(128 * 128 * 2));
  EXPECT_EQ(t.read, Bytes(2 * (64 * (128 + 256) + 128 * 256 + 256 + 32 * 64)));
}

// Found by the long property run: tiles of 16 rows and 64 columns were charged for 587 of 880
// partials where a block has 24 rows, and for fewer where it has more.
TEST(GemmTraffic, PartialsOfColumnsAreAddressedByTheTilesColumns) {
  // Given sums down the columns, one partial for each column and 128 rows,
  GemmProblem problem = plain_gemm(160, 256, 64, kA, kB, kOut, kWorkspace);
  problem.epilogue.push_back({.matrix = {10, 256, 2, 4},
                              .height = 256,
                              .width = 2,
                              .store = true,
                              .of_columns = true,
                              .origins = {}});
  const GemmTile tile{.m = 32, .n = 64};
  // then of the five rows of tiles the two that have a block's first row store its partials.
  L2Cache cache(Bytes(1 << 24));
  const std::vector<GemmWave> waves = walk(problem, tile, 4, cache);
  EXPECT_EQ(waves.front().block_epilogue, Bytes(32 * 64 * 2 + 64 * 4));
  const GemmRequested requested = requested_bytes(problem, tile);
  EXPECT_EQ(requested.epilogue[1], Bytes(2 * 256 * 4));
  EXPECT_EQ(total(waves).epilogue, requested.epilogue[0] + requested.epilogue[1]);
}

// Tiles of 160 rows: the second begins in block 1, the third in block 2, and each number is stored
// once.
TEST(GemmTraffic, EveryPartialOfAColumnIsStoredOnceByTilesOfAnyHeight) {
  for (const std::int64_t height : {16, 64, 80, 128, 160, 208, 256, 304}) {
    for (const std::int64_t m : {1, 127, 128, 129, 904, 1192}) {
      const std::int64_t blocks = (m + 127) / 128;
      GemmProblem problem = plain_gemm(m, 256, 64, kA, kB, kOut, kWorkspace);
      problem.epilogue.push_back({.matrix = {10, 256, blocks, 4},
                                  .height = 256,
                                  .width = blocks,
                                  .store = true,
                                  .of_columns = true,
                                  .origins = {}});
      EXPECT_EQ(requested_bytes(problem, {.m = height, .n = 64}).epilogue[1],
                Bytes(256 * blocks * 4))
          << height << " of " << m;
    }
  }
}

TEST(GemmTraffic, BatchedOperandsAreSlicesOfOneMatrix) {
  // Two heads: scores = q k^T with q and k slices of [64, 128]; k transposed.
  GemmProblem problem = plain_gemm(64, 64, 64, kA, kB, kOut, kWorkspace);
  problem.batch = 2;
  problem.a.matrix = {kA, 64, 128, 2};
  problem.a.origins = {{0, 0}, {0, 64}};
  problem.b.matrix = {kB, 64, 128, 2};  // [k, n] for each head side by side
  problem.b.transposed = true;
  problem.b.origins = {{0, 0}, {0, 64}};
  problem.epilogue[0].matrix = {kOut, 128, 64, 2};
  problem.epilogue[0].origins = {{0, 0}, {64, 0}};
  L2Cache cache(Bytes(1 << 24));
  const Totals t = total(walk(problem, {.m = 32, .n = 64}, 4, cache));
  EXPECT_EQ(t.read, Bytes(2 * (64 * 128 + 64 * 128)));
  EXPECT_EQ(cache.dirty(), Bytes(2 * 128 * 64));
}

TEST(GemmTraffic, AVeryLargeGemmTakesTheMeanOfItsWaves) {
  // Given a GEMM that is walked wave by wave, and one of twice the rows that is beyond the budget,
  const GemmTile tile{.m = 128, .n = 256, .cluster_m = 2};
  const auto run = [&tile](std::int64_t m, L2Cache& cache) {
    const GemmProblem p = plain_gemm(m, 8192, 8192, kA, kB, kOut, kWorkspace);
    return walk_gemm(p, tile, schedule_gemm(p.m, p.n, p.k, 1, tile, 132, 12), cache);
  };
  L2Cache cache(Bytes(34 << 20)), large_cache(Bytes(34 << 20));
  const Totals half = total(run(131072, cache));
  const std::vector<GemmWave> waves = run(262144, large_cache);
  const Totals whole = total(waves);
  // then everything doubles: bytes from L2 exactly, HBM traffic nearly.
  EXPECT_EQ(waves.size(), static_cast<std::size_t>(ceil_div(262144 / 256 * 8192 / 256, 66)));
  EXPECT_EQ(whole.operands, half.operands * 2);
  EXPECT_EQ(whole.epilogue, half.epilogue * 2);
  EXPECT_NEAR(whole.read.as_double() / half.read.as_double(), 2.0, 0.04);
  EXPECT_NEAR(whole.write.as_double() / half.write.as_double(), 2.0, 0.04);
  EXPECT_GT(large_cache.dirty(), Bytes(0));
}

}  // namespace
}  // namespace fuseline
