#include "sim/kernels/gemm_parts.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <random>
#include <vector>

#include "sim/kernels/remembering_cache.h"

namespace fuseline {
namespace {

constexpr std::uint32_t kFactorA = 1, kFactorB = 2, kResultTensor = 3, kSums = 4, kOlder = 5;

GemmWalk parted_gemm(std::int64_t m, std::int64_t n, std::int64_t k, const GemmTile& tile) {
  return {plain_gemm(m, n, k, kFactorA, kFactorB, kResultTensor, kSums), tile, 8, 4, 0};
}

void touch_before(L2Cache& cache, std::int64_t rows) {
  const CachedMatrix before{kOlder, 4096, 64, 2};
  cache.write(before, 0, rows, 0, 64);
  cache.take_traffic();
}

void expect_same_waves(const std::vector<GemmWave>& a, const std::vector<GemmWave>& b) {
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t i = 0; i < a.size(); ++i) {
    EXPECT_EQ(a[i].hbm.read, b[i].hbm.read) << "wave " << i;
    EXPECT_EQ(a[i].hbm.write, b[i].hbm.write) << "wave " << i;
    EXPECT_EQ(a[i].distinct, b[i].distinct) << "wave " << i;
    EXPECT_EQ(a[i].operands, b[i].operands) << "wave " << i;
    EXPECT_EQ(a[i].epilogue, b[i].epilogue) << "wave " << i;
    EXPECT_EQ(a[i].blocks, b[i].blocks) << "wave " << i;
    EXPECT_EQ(a[i].found, b[i].found) << "wave " << i;
  }
}

TEST(GemmParts, OneBehindTheOtherTheyAreTheWholeWalk) {
  std::mt19937 random(3);
  const auto between = [&](std::int64_t least, std::int64_t most) {
    return least + static_cast<std::int64_t>(random() % static_cast<unsigned>(most - least + 1));
  };
  int parted = 0;
  for (int i = 0; i < 60; ++i) {
    GemmTile tile{.m = 64 * between(1, 2), .n = 32 * between(1, 4)};
    tile.split_k = between(1, 3) == 3 ? 2 : 1;
    GemmWalk one = parted_gemm(between(1, 1500), between(64, 3000), between(64, 900), tile);
    one.drift = between(0, 1) == 0 ? 0 : 8;
    const Bytes capacity(between(50'000, 3'000'000));
    L2Cache whole(capacity), in_parts(capacity);
    const std::int64_t rows = between(1, 4096);
    touch_before(whole, rows);
    touch_before(in_parts, rows);
    const WalkTraffic expected = walk(one, whole);
    const std::vector<Walk> parts = parts_of(one, capacity);
    parted += parts.size() > 1 ? 1 : 0;
    WalkTraffic last;
    std::vector<GemmWave> waves;
    for (const Walk& part : parts) {
      last = part(in_parts);
      waves.insert(waves.end(), last.waves.begin(), last.waves.end());
    }
    expect_same_waves(waves, expected.waves);
    EXPECT_EQ(last.hbm.read, expected.hbm.read);
    EXPECT_EQ(last.hbm.write, expected.hbm.write);
    EXPECT_EQ(last.l2, expected.l2);
    std::vector<std::uint32_t> tensors, other_tensors;
    EXPECT_EQ(in_parts.contents(tensors), whole.contents(other_tensors));
    EXPECT_EQ(tensors, other_tensors);
  }
  EXPECT_GT(parted, 20);
}

// LLaMA-2-70B's gate_up of 8,192 tokens in some of these groups: thread blocks that drift apart
// read each panel twice, so that its 109 waves read more than is walked one by one.
TEST(GemmParts, WhatDriftReadsTwiceIsWalkedAsAWhole) {
  const Gpu gpu = load_gpu("h200");
  GemmWalk gemm{.problem = plain(8192, 57344, 8192),
                .tile = {.m = 128, .n = 256, .stages = 4, .cluster_m = 2},
                .drift = gpu.constants.gemm.drift};
  gemm.problem.library = false;
  gemm.blocks_at_once = blocks_at_once(gemm.tile, gpu);
  for (std::int64_t clusters = 1; clusters <= 32; ++clusters) {
    gemm.raster_group = 2 * clusters;
    for (const Walk& part : parts_of(gemm, gpu.l2_capacity)) {
      L2Cache cache(gpu.l2_capacity);
      EXPECT_GT(part(cache).waves.size(), 0U) << clusters;
    }
  }
}

// What L2 held at first is gone after the first part; the others are then found.
TEST(GemmParts, LaterPartsAreFoundWhateverWasThereBefore) {
  const GemmWalk one = parted_gemm(512, 4096, 512, {.m = 128, .n = 128});
  constexpr Bytes kCapacity(1'000'000);
  ASSERT_GT(parts_of(one, kCapacity).size(), 1U);
  WalkKey key;
  describe(one, key);
  const auto parts = [&] { return parts_of(one, kCapacity); };
  WalkMemo memo;
  const auto walked_after = [&](std::int64_t rows) {
    RememberingCache l2(kCapacity, &memo);
    const CachedMatrix before{kOlder, 4096, 64, 2};
    WalkKey first;
    first.matrix(before);
    first.number(rows);
    l2.walk(first, [&](L2Cache& cache) {
      cache.write(before, 0, rows, 0, 64);
      return WalkTraffic{{}, cache.take_traffic(), {}, 0};
    });
    const WalkTraffic traffic = l2.walk(key, parts);
    L2Cache plain(kCapacity);
    touch_before(plain, rows);
    expect_same_waves(traffic.waves, walk(one, plain).waves);
    for (const std::uint32_t tensor : {kFactorA, kFactorB, kResultTensor})
      EXPECT_EQ(l2.take_missed(tensor), plain.take_missed(tensor)) << "tensor " << tensor;
    EXPECT_EQ(l2.dirty(kResultTensor), plain.dirty(kResultTensor));
  };
  walked_after(64);
  const WalkMemo::Use once = memo.use();
  walked_after(640);
  // New are what came before, the first part and the whole; the other parts were found.
  EXPECT_EQ(memo.use().added, once.added + 3);
  EXPECT_EQ(memo.use().found, once.found + parts_of(one, kCapacity).size() - 1);
}

}  // namespace
}  // namespace fuseline
