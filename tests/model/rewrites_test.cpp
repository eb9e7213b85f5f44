// Every policy's rewrites keep the algebra: the plan's graph, on prepared inputs, gives the block's
// results in fp64.
#include <gtest/gtest.h>

#include "model/prepare.h"
#include "model/reference.h"
#include "model/rewrites/decompose_norm.h"
#include "model/rewrites/decompose_rope.h"
#include "model/rewrites/decompose_swiglu.h"
#include "model/rewrites/inline_pointwise.h"
#include "model/rewrites/interleave_pairs.h"
#include "model/rewrites/merge_rope.h"
#include "model/rewrites/rotate_boundary.h"
#include "model/rewrites/split_norm.h"
#include "tests/model/plan_support.h"

namespace fuseline {
namespace {

// Sums of at most a few hundred terms in fp64, outliers of 20: errors near 1e-14, and the deferred
// LayerNorm cancels two digits.
constexpr double kTolerance = 1e-10;

NamedTensors inputs_for(const Graph& block, const Graph& plan) {
  NamedTensors inputs = random_inputs(block, 3);
  for (const auto& [name, values] : random_inputs(plan, 3)) inputs.try_emplace(name, values);
  return inputs;
}

// y of the rewritten graph against y of the block.
std::string compare(const Graph& block, const Graph& graph, const Preparation& preparation) {
  const NamedTensors original = inputs_for(block, graph);
  const TensorValues want = run_reference(block, original);
  const TensorValues got = run_reference(graph, prepare(preparation, graph, original));
  return disagreement(got.at("y"), want.at("y"), kTolerance);
}

TEST(Rewrites, OfEveryPolicyKeepTheBlocksResult) {
  std::mt19937 random(5);
  for (int i = 0; i < 60; ++i) {
    const test::RandomBlock b = test::random_block(random);
    SCOPED_TRACE(test::describe(b));
    const Graph block = build_block(b.config, b.work);
    for (const PolicyInfo& info : policies()) {
      const Plan plan = make_plan(info.name, block);
      EXPECT_EQ(compare(block, plan.graph, plan.preparation), "") << info.name;
    }
  }
}

class EachRewrite : public ::testing::TestWithParam<Rewrite (*)()> {};

TEST_P(EachRewrite, ChangesTheGraphAndKeepsTheResult) {
  const Rewrite rewrite = GetParam()();
  std::mt19937 random(13);
  int applied = 0;
  for (int i = 0; i < 40; ++i) {
    const test::RandomBlock b = test::random_block(random);
    SCOPED_TRACE(std::string(rewrite.name) + " on " + test::describe(b));
    const Graph graph = build_block(b.config, b.work);
    if (!rewrite.applies(graph)) continue;
    Block block{graph, {}};
    rewrite.apply(block);
    ++applied;
    EXPECT_EQ(compare(graph, block.graph, block.preparation), "");
    EXPECT_EQ(topological_order(block.graph).size(), block.graph.ops().size());
  }
  EXPECT_GT(applied, 3);
}

INSTANTIATE_TEST_SUITE_P(All, EachRewrite,
                         ::testing::Values(decompose_norm, decompose_rope, decompose_swiglu,
                                           merge_rope, split_norm, rotate_entry_norm,
                                           interleave_gate_up, interleave_heads, inline_pointwise));

TEST(Rewrites, AForgottenReorderingShows) {
  // Given coda's plan, when the weights are not interleaved, then the result is wrong.
  const Graph block = build_block(test::tiny_llama(), test::forward(1, 5));
  Plan plan = make_plan("coda", block);
  plan.preparation.interleavings.pop_back();
  EXPECT_NE(compare(block, plan.graph, plan.preparation), "");
}

TEST(Rewrites, StatisticsOfTheNextBlockAreThoseOfY) {
  const Graph block = build_block(test::tiny_llama(), test::forward(1, 5));
  const Plan plan = make_plan("coda", block);
  const NamedTensors original = inputs_for(block, plan.graph);
  const TensorValues got =
      run_reference(plan.graph, prepare(plan.preparation, plan.graph, original));
  const std::vector<double>& y = got.at("y");
  const std::vector<double>& stats = got.at("y_stats");
  ASSERT_EQ(stats.size(), 5u);
  for (std::size_t m = 0; m < 5; ++m) {
    double squares = 0;
    for (std::size_t n = 0; n < 20; ++n) squares += y[m * 20 + n] * y[m * 20 + n];
    EXPECT_NEAR(stats[m], squares, 1e-12 * squares);
  }
}

TEST(Rewrites, DecomposeNormMakesTheEightPrimitivesOfAFramework) {
  Block block{build_block(test::tiny_llama(), test::forward(1, 2)), {}};
  const std::size_t before = block.graph.ops().size();
  decompose_norm().apply(block);
  EXPECT_EQ(block.graph.ops().size(), before + 2 * 7);
  EXPECT_EQ(block.graph.tensor(*block.graph.find_tensor("norm1_square")).dtype, Dtype::fp32);
}

TEST(Rewrites, SplitNormPutsTheBiasBehindADeferredLayerNormIntoItsShift) {
  Block block{build_block(test::tiny_gpt(), test::forward(1, 2)), {}};
  split_norm().apply(block);
  EXPECT_FALSE(block.graph.find_op("qkv_bias"));
  EXPECT_TRUE(block.graph.find_op("qkv_norm"));
  EXPECT_TRUE(block.graph.find_op("oproj_bias"));
}

TEST(Rewrites, DoNotApplyWhereThereIsNothingToDo) {
  const Graph gpt = build_block(test::tiny_gpt(), test::forward(1, 2));
  EXPECT_FALSE(decompose_norm().applies(gpt));
  EXPECT_FALSE(decompose_rope().applies(gpt));
  EXPECT_FALSE(merge_rope().applies(gpt));
  EXPECT_FALSE(interleave_heads().applies(gpt));
  EXPECT_FALSE(rotate_statistics().applies(gpt));  // only after split_norm
}

}  // namespace
}  // namespace fuseline
