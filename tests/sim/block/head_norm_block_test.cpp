// Norms of every head of Q and K, as in Qwen3, SD3 and Gemma 3: behind the product that makes Q, K
// and V, and before their rotation.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "model/explain.h"
#include "model/why_not.h"
#include "tests/model/tiny_models.h"
#include "tests/sim/open_blocks.h"

namespace fuseline {
namespace {

using test::BlockSizes;
using test::expect_block_proved;
using test::expect_block_trained;
using test::expect_proved;
using test::pick;
using test::qwen3_like;

const Kernel& norm_kernel(const Plan& plan, const std::string& op) {
  const OpId id = plan.graph.find_op(op).value();
  return *std::ranges::find_if(
      plan.kernels, [&](const Kernel& k) { return std::ranges::find(k.ops, id) != k.ops.end(); });
}
bool together(const Plan& plan, const std::string& a, const std::string& b) {
  return &norm_kernel(plan, a) == &norm_kernel(plan, b);
}

TEST(HeadNormBlock, IsProvedUnderEveryPolicy) { expect_block_proved(qwen3_like({}), ""); }

TEST(HeadNormBlock, IsTrained) { expect_block_trained(qwen3_like({}), ""); }

TEST(HeadNormBlock, IsProvedForRandomSizes) {
  std::mt19937 random(8);
  for (int round = 0; round < 10; ++round) {
    BlockSizes s;
    s.batch = pick(random, 1, 3);
    s.tokens = pick(random, 1, 150);
    s.model = pick(random, 3, 140);
    s.inner = pick(random, 3, 150);
    s.kv_heads = pick(random, 1, 3);
    s.heads = s.kv_heads * pick(random, 1, 3);
    s.width = round % 2 == 0 ? 16 : 2 * pick(random, 1, 20);
    const std::string policy = executor::all_policies()[static_cast<std::size_t>(round)];
    expect_proved(make_plan(policy, qwen3_like(s)), policy + " round " + std::to_string(round));
  }
}

// PyTorch 2.11: its norm copies each slice, then one kernel and five of RoPE; Inductor has one
// kernel for Q and one for K, and one for both where they have as many heads.
TEST(HeadNormBlock, FrameworksLaunchWhatTheyLaunch) {
  const Plan eager = make_plan("eager", qwen3_like({}));
  for (const char* op : {"norm_q_copy", "norm_q", "norm_k_copy", "norm_k"})
    EXPECT_EQ(norm_kernel(eager, op).ops.size(), 1U) << op;
  BlockSizes s;
  const Plan grouped = make_plan("torch-compile", qwen3_like(s));
  EXPECT_TRUE(together(grouped, "norm_q", "rope_q"));
  EXPECT_TRUE(together(grouped, "norm_k", "rope_k"));
  EXPECT_FALSE(together(grouped, "norm_q", "norm_k"));
  s.kv_heads = s.heads;
  const Plan equal = make_plan("torch-compile", qwen3_like(s));
  EXPECT_TRUE(together(equal, "norm_q", "rope_k"));
  EXPECT_EQ(equal.kernels.size() + 1, grouped.kernels.size());
}

// Tiles of 128 columns hold whole heads of 8, so the GEMM that makes Q and K measures them; heads
// of 24 columns are cut.
TEST(HeadNormBlock, CodaMeasuresHeadsBehindTheGemm) {
  BlockSizes s;
  const Plan plan = make_plan("coda", qwen3_like(s));
  EXPECT_TRUE(together(plan, "qkv", "norm_q"));
  EXPECT_TRUE(together(plan, "qkv", "rope_k"));
  s.width = 24;
  const Plan cut = make_plan("coda", qwen3_like(s));
  EXPECT_FALSE(together(cut, "qkv", "norm_q"));
  const OpId gemm = cut.graph.find_op("qkv").value();
  const OpId scale = cut.graph.find_op("qkv_scale").value();
  const OpId norm = cut.graph.find_op("norm_q").value();
  EXPECT_EQ(why_no_program(cut.graph, {gemm, scale, norm}),
            "norm_q needs whole heads of 24 columns, while tiles of qkv hold 128");
}

// Row by row, a norm of heads is RMSNorm of each.
TEST(HeadNorm, IsRmsNormOfEachHead) {
  test::GraphByHand b;
  const Operand x = b.tensor("x", Role::input, 5, 24);
  const Operand w = b.tensor("w", Role::weight, 1, 8);
  const Operand y = b.tensor("y", Role::output, 5, 24);
  b.op("heads", operators::head_norm, {x, w}, {y}, HeadNorm{.head_width = 8, .eps = 1e-3});
  for (int head = 0; head < 3; ++head) {
    const std::string name = "one" + std::to_string(head);
    b.op(name, operators::rms_norm, {b.graph.columns(x.tensor, 8 * head, 8), w},
         {b.tensor(name, Role::output, 5, 8)}, NormEps{1e-3});
  }
  const TensorValues values = run_reference(b.graph, random_inputs(b.graph, 3));
  for (std::size_t m = 0; m < 5; ++m)
    for (std::size_t n = 0; n < 24; ++n)
      EXPECT_NEAR(values.at("y")[m * 24 + n],
                  values.at("one" + std::to_string(n / 8))[m * 8 + n % 8], 1e-12);
}

}  // namespace
}  // namespace fuseline
