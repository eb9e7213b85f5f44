// Attention and MLP side by side behind one norm, as in GPT-J and Falcon: both read the norm's
// result, and three summands meet. GPT-J rotates adjacent pairs of the first columns of each head.
#include <gtest/gtest.h>

#include <random>

#include "tests/model/tiny_models.h"
#include "tests/sim/open_blocks.h"

namespace fuseline {
namespace {

using test::BlockSizes;
using test::expect_block_proved;
using test::expect_block_trained;
using test::expect_proved;
using test::parallel_block;
using test::pick;

// d, the columns that turn, and whether they are adjacent pairs.
struct Rotation {
  std::int64_t width, rotated;
  bool adjacent;
};
Pairs pairs_of(const Rotation& r) {
  return {.head_width = r.width, .interleaved = r.adjacent, .rotated = r.rotated};
}

const std::vector<Rotation> kRotations{
    {16, 4, true},   // GPT-J
    {16, 8, true},   // GLM4
    {16, 8, false},  // the first halves
    {20, 8, false},  // Phi-2: heads are no whole runs of what turns
    {8, 0, true}     // GPT-NeoX's tables, adjacent, all columns
};

TEST(ParallelBlock, IsProvedUnderEveryPolicy) {
  for (const Rotation& r : kRotations) {
    BlockSizes s;
    s.width = r.width;
    expect_block_proved(parallel_block(s, pairs_of(r)), std::to_string(r.width) + " columns, " +
                                                            std::to_string(r.rotated) + " turn");
  }
}

TEST(ParallelBlock, IsTrained) {
  for (const Rotation& r : kRotations) {
    BlockSizes s;
    s.width = r.width;
    expect_block_trained(parallel_block(s, pairs_of(r)), std::to_string(r.width) + " columns, " +
                                                             std::to_string(r.rotated) + " turn");
  }
}

TEST(ParallelBlock, IsProvedForRandomSizes) {
  std::mt19937 random(7);
  for (int round = 0; round < 10; ++round) {
    BlockSizes s;
    s.batch = pick(random, 1, 3);
    s.tokens = pick(random, 1, 150);
    s.model = pick(random, 3, 140);
    s.inner = pick(random, 3, 150);
    s.kv_heads = pick(random, 1, 2);
    s.heads = s.kv_heads * pick(random, 1, 3);
    s.width = 2 * pick(random, 2, 20);
    const std::int64_t turned = 2 * pick(random, 1, s.width / 2);
    const std::string policy = executor::all_policies()[static_cast<std::size_t>(round)];
    expect_proved(make_plan(policy, parallel_block(s, {.head_width = s.width,
                                                       .interleaved = round % 2 == 0,
                                                       .rotated = turned})),
                  policy + " round " + std::to_string(round));
  }
}

// Framework eager: what turns is multiplied, negated, exchanged, multiplied, added, and joined with
// the rest, for Q and for K.
TEST(ParallelBlock, EagerLaunchesTheStepsOfAPartialRotation) {
  BlockSizes s;
  s.width = 16;
  const auto launches = [&](const Pairs& pairs) {
    return std::ssize(make_plan("eager", parallel_block(s, pairs)).kernels);
  };
  const std::int64_t whole = launches({.head_width = 16});
  EXPECT_EQ(launches({.head_width = 16, .interleaved = true}), whole);
  EXPECT_EQ(launches({.head_width = 16, .interleaved = true, .rotated = 4}), whole + 2);
}

// What does not turn is copied by nobody where the rotation runs behind the GEMM.
TEST(ParallelBlock, CodaRotatesAPartBehindTheGemm) {
  BlockSizes s;
  s.width = 16;
  const Pairs part{.head_width = 16, .interleaved = true, .rotated = 4};
  EXPECT_EQ(make_plan("coda", parallel_block(s, part)).kernels.size(),
            make_plan("coda", parallel_block(s, {.head_width = 16})).kernels.size());
}

}  // namespace
}  // namespace fuseline
