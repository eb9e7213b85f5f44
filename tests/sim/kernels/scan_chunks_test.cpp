// Which scans go in chunks on the tensor cores, and with which thread blocks.
#include "sim/kernels/scan_chunks.h"

#include <gtest/gtest.h>

#include <random>

#include "model/policy.h"
#include "model/target.h"
#include "tests/model/scan_support.h"

namespace fuseline {
namespace {

constexpr std::int64_t kHopper = 227 * 1024, kAmpere = 163 * 1024, kConsumer = 99 * 1024;
constexpr std::int64_t kMultiprocessors = 132;

std::optional<ChunkLayout> layout_of(const Graph& graph, std::int64_t shared = kHopper) {
  const Plan plan = make_plan("per-operator", graph);
  return chunk_layout(plan.graph, std::get<ScanMainloop>(plan.kernels[0].phases[0].mainloop),
                      shared, kMultiprocessors);
}
std::optional<ChunkLayout> layout_of(const ScanShape& shape, std::int64_t shared = kHopper,
                                     Dtype dtype = Dtype::bf16) {
  return layout_of(test::scan_graph({.shape = shape, .dtype = dtype}), shared);
}

TEST(ScanChunks, RealModelsHaveThem) {
  // Mamba-2 2.7B has 80 heads: one thread block each. 130M has 24, shared by four blocks.
  EXPECT_EQ(layout_of({80, 1, 64, 128, 1, 2048, 256}), (ChunkLayout{64, 128}));
  EXPECT_EQ(layout_of({80, 1, 64, 128, 1, 2048, 256}, kAmpere), (ChunkLayout{64, 128}));
  EXPECT_EQ(layout_of({24, 1, 64, 128, 1, 2048, 256}), (ChunkLayout{16, 128}));
  EXPECT_EQ(layout_of({64, 1, 64, 128, 1, 2048, 256}), (ChunkLayout{32, 128}));
  EXPECT_EQ(layout_of({80, 1, 64, 128, 8, 2048, 256}), (ChunkLayout{64, 128}));
  EXPECT_EQ(layout_of({128, 8, 64, 256, 1, 2048, 256}), (ChunkLayout{32, 256}));
}

TEST(ScanChunks, OthersAreWalked) {
  const ScanShape mamba2{80, 1, 64, 128, 1, 2048, 256};
  EXPECT_FALSE(layout_of(mamba2, kHopper, Dtype::fp32));
  EXPECT_FALSE(layout_of(mamba2, kHopper, Dtype::fp16));
  EXPECT_FALSE(layout_of(test::selective_graph({mamba2, false, false, Dtype::bf16}, true)));
  EXPECT_TRUE(layout_of(test::selective_graph({mamba2, false, false, Dtype::bf16}, false)));
  for (const ScanShape& s : {ScanShape{80, 1, 64, 128, 16, 1, 256},    // decode
                             ScanShape{80, 1, 64, 128, 1, 2048, 1},    // step by step
                             ScanShape{80, 1, 60, 128, 1, 2048, 256},  // no whole tiles
                             ScanShape{80, 1, 64, 120, 1, 2048, 256},
                             ScanShape{80, 1, 64, 1024, 1, 2048, 256}})  // wider than registers
    EXPECT_FALSE(layout_of(s)) << test::describe({s});
}

// A k that begins at column 12 is no whole number of 16-byte vectors into its rows.
TEST(ScanChunks, CopiesNeedWholeVectors) {
  test::ScanCase c{.shape = {4, 1, 16, 64, 1, 100, 64}, .dtype = Dtype::bf16};
  Graph graph = test::scan_graph(c);
  const Plan plan = make_plan("per-operator", graph);
  ScanMainloop m = std::get<ScanMainloop>(plan.kernels[0].phases[0].mainloop);
  EXPECT_TRUE(chunk_layout(plan.graph, m, kHopper, kMultiprocessors));
  m.k.col_begin = 12;
  EXPECT_FALSE(chunk_layout(plan.graph, m, kHopper, kMultiprocessors));
  m.k.col_begin = 16;
  EXPECT_TRUE(chunk_layout(plan.graph, m, kHopper, kMultiprocessors));
  m.q.at.run = 50;
  EXPECT_FALSE(chunk_layout(plan.graph, m, kHopper, kMultiprocessors));
}

// Whatever the shape: blocks that cover every column once, and fit.
TEST(ScanChunks, HoldAnyShape) {
  std::mt19937 random(17);
  int made = 0;
  for (int round = 0; round < 400; ++round) {
    ScanShape s;
    s.groups = test::pick(random, 1, 4);
    s.heads = s.groups * test::pick(random, 1, 40);
    s.head_width = 16 * test::pick(random, 1, 8);
    s.state_width = 16 * test::pick(random, 1, 16);
    s.batch = test::pick(random, 1, 9);
    s.tokens = test::pick(random, 1, 300);
    s.chunk = test::pick(random, 1, 256);
    const std::int64_t shared = round % 3 == 0 ? kHopper : round % 3 == 1 ? kAmpere : kConsumer;
    const auto l = layout_of(s, shared);
    if (!l) continue;
    ++made;
    SCOPED_TRACE(test::describe({s}));
    EXPECT_LE(l->shared_bytes(), shared);
    EXPECT_EQ(s.head_width % l->cols, 0);
    EXPECT_EQ(l->numbers, s.state_width);
    EXPECT_EQ(l->numbers % (16 * l->across()), 0);
    EXPECT_EQ(chunk_blocks(s, *l) * l->cols, s.batch * s.heads * s.head_width);
    EXPECT_GE(std::min(s.tokens, s.chunk), 16);
  }
  EXPECT_GT(made, 50);
}

}  // namespace
}  // namespace fuseline
