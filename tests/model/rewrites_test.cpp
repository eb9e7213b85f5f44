// Every policy's rewrites keep the algebra: the plan's graph, on prepared inputs, gives the block's
// results in fp64.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "model/backward.h"
#include "model/blocks/block.h"
#include "model/blocks/block_text.h"
#include "model/operators/all_operators.h"
#include "model/prepare.h"
#include "model/reference.h"
#include "model/rewrites/attention_backward.h"
#include "model/rewrites/copy_slices.h"
#include "model/rewrites/decompose_modulation.h"
#include "model/rewrites/decompose_norm.h"
#include "model/rewrites/decompose_rope.h"
#include "model/rewrites/decompose_swiglu.h"
#include "model/rewrites/inline_pointwise.h"
#include "model/rewrites/interleave_pairs.h"
#include "model/rewrites/merge_rope.h"
#include "model/rewrites/order_linear_gradients.h"
#include "model/rewrites/rotate_boundary.h"
#include "model/rewrites/split_column_sums.h"
#include "model/rewrites/split_norm.h"
#include "model/rewrites/store_places.h"
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

// Every output of the block against the rewritten graph's: y, and the gradients in training.
std::string compare(const Graph& block, const Graph& graph, const Preparation& preparation) {
  const NamedTensors original = inputs_for(block, graph);
  const TensorValues want = run_reference(block, original);
  const TensorValues values = run_reference(graph, prepare(preparation, graph, original));
  NamedTensors got;
  for (const Tensor& t : graph.tensors())
    if (t.role == Role::output) got[t.name] = values.at(t.name);
  got = restore(preparation, graph, got);
  std::string wrong;
  for (const Tensor& t : block.tensors()) {
    if (t.role != Role::output) continue;
    if (!got.contains(t.name)) return t.name + " is missing";
    // One gradient may be all zero: that of Q and K when a query sees one key.
    const bool zero = std::ranges::all_of(want.at(t.name), [](double x) { return x == 0; });
    if (zero) continue;
    const std::string problem = disagreement(got.at(t.name), want.at(t.name), kTolerance);
    if (!problem.empty()) wrong += t.name + ": " + problem + "; ";
  }
  return wrong;
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

// Codes are those of the block in fp64, so that nothing is left of the formats' roundoff.
TEST(Rewrites, OfEveryPolicyKeepTheResultOfACacheInFewBits) {
  for (ModelConfig config : {test::tiny_llama(), test::tiny_gpt()}) {
    for (const std::string& name : cache_format_names()) {
      Workload work = test::decode(2, 3, 17);
      work.formats.cache = parse_stored_cache(name, "", "");
      for (const std::int64_t window : {0, 5}) {
        config.sliding_window = window;
        const Graph block = build_block(config, work);
        for (const PolicyInfo& info : policies()) {
          const Plan plan = make_plan(info.name, block);
          EXPECT_EQ(compare(block, plan.graph, plan.preparation), "") << info.name << ", " << name;
        }
      }
    }
  }
}

TEST(Rewrites, OfEveryPolicyKeepTheGradients) {
  std::mt19937 random(43);
  for (int i = 0; i < 50; ++i) {
    const test::RandomBlock b = test::random_training_block(random);
    SCOPED_TRACE(test::describe(b));
    const Graph block = build_block(b.config, b.work);
    for (const std::string& policy : test::training_policies()) {
      const Plan plan = make_plan(policy, block);
      EXPECT_EQ(compare(block, plan.graph, plan.preparation), "") << policy;
    }
  }
}

// Embedding and its gradient; final norm, LM head, loss and their gradients.
TEST(Rewrites, OfEveryPolicyKeepTheGradientsOfTheModelsEnds) {
  std::mt19937 random(47);
  for (int i = 0; i < 30; ++i) {
    test::RandomBlock b = test::random_training_block(random);
    b.config.V = test::pick(random, 2, 400);
    SCOPED_TRACE(test::describe(b));
    for (const Graph& end : {build_entry(b.config, b.work), build_exit(b.config, b.work)}) {
      for (const std::string& policy : test::training_policies()) {
        const Plan plan = make_plan(policy, end);
        EXPECT_EQ(compare(end, plan.graph, plan.preparation), "") << policy;
      }
    }
  }
}

struct TrainingModel {
  const char* name;
  ModelConfig config;
};

class TrainedModel : public ::testing::TestWithParam<TrainingModel> {};

// The three kinds of block, wide enough for several partial tiles in rows and columns.
TEST_P(TrainedModel, HasTheSameGradientsUnderEveryPolicy) {
  const Graph block = build_block(GetParam().config, test::train(2, 70));
  for (const std::string& policy : test::training_policies()) {
    const Plan plan = make_plan(policy, block);
    EXPECT_EQ(compare(block, plan.graph, plan.preparation), "") << policy;
    EXPECT_EQ(check_plan(plan), std::vector<std::string>{}) << policy;
  }
}

ModelConfig wide(ModelConfig config, std::int64_t kv_heads) {
  config.D = 150;
  config.F = 137;
  config.H = 4;
  config.Hkv = kv_heads;
  config.d = 34;
  return config;
}

ModelConfig biased(ModelConfig config) {
  config.qkv_bias = config.out_bias = config.mlp_bias = true;
  return config;
}

INSTANTIATE_TEST_SUITE_P(Rewrites, TrainedModel,
                         ::testing::Values(TrainingModel{"llama_mha", wide(test::tiny_llama(), 4)},
                                           TrainingModel{"llama_gqa", wide(test::tiny_llama(), 2)},
                                           TrainingModel{"llama_gqa_biased",
                                                         biased(wide(test::tiny_llama(), 2))},
                                           TrainingModel{"gpt", wide(test::tiny_gpt(), 4)}),
                         [](const auto& m) { return std::string(m.param.name); });

// A joint graph with all that the rewrites of the backward pass look for.
Graph joint_graph(const test::RandomBlock& b) {
  BackwardOptions options;
  options.save_log_sum_exp = true;
  options.concatenate_slices = true;
  return differentiate(*build_block(b.config, b.work).forward(), options);
}

class EachTrainingRewrite : public ::testing::TestWithParam<Rewrite (*)()> {};

TEST_P(EachTrainingRewrite, KeepsYAndTheGradients) {
  const Rewrite rewrite = GetParam()();
  std::mt19937 random(47);
  int applied = 0;
  for (int i = 0; i < 40; ++i) {
    const test::RandomBlock b = test::random_training_block(random);
    SCOPED_TRACE(std::string(rewrite.name) + " on " + test::describe(b));
    const Graph graph = joint_graph(b);
    if (!rewrite.applies(graph)) continue;
    Block block{graph, {}};
    rewrite.apply(block);
    ++applied;
    EXPECT_EQ(compare(graph, block.graph, block.preparation), "");
  }
  EXPECT_GT(applied, 3);
}

INSTANTIATE_TEST_SUITE_P(All, EachTrainingRewrite,
                         ::testing::Values(decompose_norm, decompose_rope, decompose_swiglu,
                                           accumulate_dq, sum_grouped_heads, split_column_sums,
                                           order_linear_gradients, inline_pointwise));

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

// Rotations of adjacent pairs, or of a part of each head, in steps; the same in training.
Graph rotated(const Pairs& pairs) {
  Graph g;
  const std::int64_t d = pairs.head_width;
  const Operand x =
      g.whole(g.add_tensor({.name = "x", .role = Role::input, .rows = 6, .cols = 3 * d}));
  const auto table = [&](const char* name) {
    return g.whole(
        g.add_tensor({.name = name, .role = Role::table, .rows = 3, .cols = pairs.turned()}));
  };
  const Operand cos = table("cos");
  const Operand sin = table("sin");
  const Operand y =
      g.whole(g.add_tensor({.name = "y", .role = Role::output, .rows = 6, .cols = 3 * d}));
  g.add_op({"rope", operators::rope, {x, cos, sin}, {y}, pairs, ""});
  return g;
}

TEST(DecomposeRope, KeepsRotationsOfAPartAndOfAdjacentPairs) {
  const Rewrite rewrite = decompose_rope();
  for (const Pairs& pairs :
       {Pairs{.head_width = 10, .interleaved = true},
        Pairs{.head_width = 10, .interleaved = true, .rotated = 4},
        Pairs{.head_width = 10, .rotated = 4}, Pairs{.head_width = 12, .rotated = 6}})
    for (const bool train : {false, true}) {
      const Graph graph = train ? differentiate(rotated(pairs)) : rotated(pairs);
      ASSERT_TRUE(rewrite.applies(graph));
      Block block{graph, {}};
      rewrite.apply(block);
      EXPECT_FALSE(block.graph.find_op("rope").has_value());
      EXPECT_EQ(compare(graph, block.graph, block.preparation), "")
          << pairs.rotated << ' ' << pairs.interleaved << ' ' << train;
    }
}

TEST(DecomposeModulation, KeepsTheResult) {
  Graph g;
  const auto tensor = [&](const char* name, Role role, std::int64_t rows, std::int64_t cols) {
    return g.whole(g.add_tensor({.name = name, .role = role, .rows = rows, .cols = cols}));
  };
  const Operand x = tensor("x", Role::input, 6, 4);
  const Operand ada = tensor("ada", Role::input, 2, 12);
  const Operand y = tensor("m", Role::activation, 6, 4);
  const Operand h = tensor("y", Role::output, 6, 4);
  const auto part = [&](int i) { return g.columns(ada.tensor, 4 * i, 4); };
  const Sequences rows{.batch = 2, .tokens = 3};
  g.add_op({"modulate", operators::modulate, {x, part(0), part(1)}, {y}, rows, ""});
  g.add_op({"gate", operators::gate_add, {x, y, part(2)}, {h}, rows, ""});
  Block block{g, {}};
  decompose_modulation().apply(block);
  EXPECT_EQ(block.graph.ops().size(), 5U);
  EXPECT_EQ(compare(g, block.graph, block.preparation), "");
}

TEST(CopySlices, CopiesSlicesOnly) {
  Graph g;
  const auto tensor = [&](const char* name, Role role, std::int64_t rows, std::int64_t cols) {
    return g.whole(g.add_tensor({.name = name, .role = role, .rows = rows, .cols = cols}));
  };
  const Operand x = tensor("x", Role::input, 6, 8);
  const Operand w = tensor("w", Role::weight, 1, 4);
  const HeadNorm norm{.head_width = 4, .eps = 1e-3};
  g.add_op({"whole", operators::head_norm, {x, w}, {tensor("a", Role::output, 6, 8)}, norm, ""});
  EXPECT_FALSE(copy_slices().applies(g));
  g.add_op({"slice",
            operators::head_norm,
            {g.columns(x.tensor, 4, 4), w},
            {tensor("b", Role::output, 6, 4)},
            norm,
            ""});
  ASSERT_TRUE(copy_slices().applies(g));
  Block block{g, {}};
  copy_slices().apply(block);
  EXPECT_TRUE(block.graph.find_op("slice_copy").has_value());
  EXPECT_FALSE(block.graph.find_op("whole_copy").has_value());
  EXPECT_EQ(compare(g, block.graph, block.preparation), "");
}

// Every sum of rows at their places, forward and backward, and no other sort is asked for more.
TEST(StorePlaces, LeavesNothingToLookFor) {
  for (const std::int64_t k : {1, 3}) {
    ModelConfig experts = test::small_experts();
    experts.values["k"] = k;
    for (const Workload& work : {test::forward(2, 7), test::train(1, 9)}) {
      const Graph joint = make_plan("unfused", build_block(experts, work)).graph;
      ASSERT_TRUE(store_places().applies(joint));
      Block block{joint, {}};
      store_places().apply(block);
      EXPECT_FALSE(store_places().applies(block.graph));
      for (const Op& op : block.graph.ops()) {
        EXPECT_NE(op.kind, operators::sum_rows) << op.name;
        EXPECT_NE(op.kind, operators::place_numbers) << op.name;
        EXPECT_EQ(op.writes.size() > 1,
                  op.kind == operators::sort_places || op.kind == operators::choose_experts ||
                      joint.op(joint.find_op(op.name).value()).writes.size() > 1)
            << op.name;
      }
      EXPECT_EQ(compare(joint, block.graph, block.preparation), "");
    }
  }
  EXPECT_FALSE(store_places().applies(build_block(test::tiny_llama(), test::forward(1, 5))));
}

TEST(StorePlaces, TakesAnotherNameWhereABlockHasIts) {
  Graph graph = make_plan("unfused", build_block(test::small_experts(), test::forward(2, 7))).graph;
  graph.add_tensor({.name = "order_places", .role = Role::activation, .rows = 1, .cols = 1});
  Block block{graph, {}};
  store_places().apply(block);
  EXPECT_TRUE(block.graph.find_tensor("order_places_").has_value());
}

TEST(Rewrites, AForgottenReorderingShows) {
  // Given coda's plan, when the weights are not interleaved, then the result is wrong.
  const Graph block = build_block(test::tiny_llama(), test::forward(1, 5));
  Plan plan = make_plan("coda", block);
  plan.preparation.interleavings.pop_back();
  EXPECT_NE(compare(block, plan.graph, plan.preparation), "");
}

TEST(Rewrites, AGradientInTheOrderOfItsReorderedWeightShows) {
  const Graph block = build_block(test::tiny_llama(), test::train(1, 5));
  Plan plan = make_plan("coda", block);
  ASSERT_FALSE(plan.preparation.results.empty());
  plan.preparation.results.clear();
  const std::string wrong = compare(block, plan.graph, plan.preparation);
  EXPECT_NE(wrong.find("dw_gate_up: "), std::string::npos) << wrong;
  EXPECT_EQ(wrong.find("dw_down: "), std::string::npos) << wrong;
}

TEST(Rewrites, ADeferredNormWithoutItsRowSumShows) {
  // Given coda's row sums divided by a wrong width, then everything behind the norm is wrong.
  const Graph block = build_block(test::tiny_llama(), test::train(1, 5));
  Plan plan = make_plan("coda", block);
  Attributes& attributes = plan.graph.op(*plan.graph.find_op("finish_dot_norm2")).attributes;
  RowStatistics statistics = attributes.as<RowStatistics>();
  statistics.norm_width *= 2;
  attributes = statistics;
  const std::string wrong = compare(block, plan.graph, plan.preparation);
  EXPECT_NE(wrong.find("dx: "), std::string::npos) << wrong;
  EXPECT_NE(wrong.find("dw_o: "), std::string::npos) << wrong;
  EXPECT_EQ(wrong.find("dw_gate_up: "), std::string::npos) << wrong;
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

// A product of some of the norm's rows would meet the statistics of others.
TEST(Rewrites, SplitNormLeavesANormWhoseRowsAreReadInPart) {
  const auto text = BlockText::parse(
      "fuseline.block/1\nblock b(D = 8)\n  input x[M, D]\n"
      "  xn = rms_norm(x, w_norm[D], eps = 1e-5)\n"
      "  first, others = split_tokens(xn, 1, T - 1)\n"
      "  y = linear(first, w[D, D])\n  output y\n",
      "t.block");
  Block block{build_graph(*text, {}, test::forward(2, 3)), {}};
  EXPECT_FALSE(split_norm().applies(block.graph));
}

// The weights that the rotated norm reads are the next layer's, and the graph says which ones.
TEST(RotateEntryNorm, NamesTheNextLayersWeights) {
  Block block{.graph = build_block(test::tiny_gpt(), test::forward(1, 2)), .preparation = {}};
  for (const Tensor& t : block.graph.tensors()) EXPECT_EQ(t.of_next_layer, "") << t.name;
  rotate_entry_norm().apply(block);
  std::map<std::string, std::string> next;
  for (const Tensor& t : block.graph.tensors())
    if (!t.of_next_layer.empty()) next[t.name] = t.of_next_layer;
  const std::map<std::string, std::string> expected{{"w_norm1_next", "w_norm1"},
                                                    {"b_norm1_next", "b_norm1"}};
  EXPECT_EQ(next, expected);
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
