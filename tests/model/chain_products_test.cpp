// Two products in one kernel: which the rewrite allows, what they become, and why others do not.
#include "model/rewrites/chain_products.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "model/chain.h"
#include "model/lower.h"
#include "model/rewrites/interleave_pairs.h"
#include "model/why_not.h"
#include "tests/model/plan_support.h"

namespace fuseline {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

ModelConfig chainable(ModelConfig c) {
  c.D = 192;  // multiples of 16 bytes
  c.F = 320;
  c.H = c.Hkv = 6;
  c.d = 32;
  return c;
}

Graph chained(const ModelConfig& model, const Workload& work) {
  Block block{build_block(model, work), {}};
  if (interleave_gate_up().applies(block.graph)) interleave_gate_up().apply(block);
  EXPECT_TRUE(chain_products().applies(block.graph));
  chain_products().apply(block);
  EXPECT_FALSE(chain_products().applies(block.graph)) << "once is enough";
  return block.graph;
}

std::vector<OpId> ops_named(const Graph& graph, const std::vector<std::string>& names) {
  std::vector<OpId> ops;
  for (const std::string& name : names) ops.push_back(*graph.find_op(name));
  return ops;
}

const std::vector<std::string> kLlamaOperators = {"gate_up", "swiglu", "down", "residual2"};

TEST(ChainProducts, AreTwoProgramsWithTheResultOfTheFirstOnChip) {
  const Graph graph = chained(chainable(test::tiny_llama()), test::decode(3, 1, 40));
  const std::vector<OpId> ops = ops_named(graph, kLlamaOperators);
  EXPECT_EQ(why_no_program(graph, ops), "");
  const std::vector<Program> programs = lower_kernel(graph, "gate_up", ops);
  ASSERT_EQ(programs.size(), 2U);
  for (const Program& p : programs) EXPECT_THAT(check_program(graph, p), IsEmpty());
  const auto& second = std::get<GemmMainloop>(programs[1].mainloop);
  EXPECT_EQ(graph.tensor(second.a.tensor).name, "act");
  EXPECT_EQ(programs[1].name, "down");
}

TEST(ChainProducts, ArePlannedByPolicyCustomAndKeepTheirResultOnChip) {
  const Graph graph = build_block(chainable(test::tiny_llama()), test::decode(2, 1, 40));
  const Plan plan = make_custom_plan(graph, {"interleave_gate_up", "chain_products"},
                                     {{"gate_up", "swiglu"}, {"swiglu", "down"}});
  EXPECT_THAT(check_plan(plan), IsEmpty());
  const Kernel* kernel = test::find_kernel(plan, "gate_up");
  ASSERT_NE(kernel, nullptr);
  EXPECT_EQ(kernel->implementation, Implementation::chained_products);
  const auto kept = handed_over(*kernel);
  ASSERT_TRUE(kept.has_value());
  EXPECT_EQ(plan.homes[static_cast<std::size_t>(kept->tensor.index)], Home::on_chip);
  for (const Kernel& k : plan.kernels)
    EXPECT_EQ(handed_over(k).has_value(), &k == kernel) << k.name;
}

TEST(ChainProducts, LeaveBothProductsKernelsOfTheirOwn) {
  const ModelConfig model = chainable(test::tiny_gpt());
  const Graph graph = chained(model, test::decode(2, 1, 40));
  for (const char* name : {"up", "down"}) {
    EXPECT_EQ(why_no_program(graph, ops_named(graph, {name})), "");
    EXPECT_EQ(lower_kernel(graph, name, ops_named(graph, {name})).size(), 1U);
  }
}

TEST(ChainProducts, AreRefusedWithoutTheRewrite) {
  const Graph graph = build_block(chainable(test::tiny_gpt()), test::decode(2, 1, 40));
  EXPECT_THAT(why_no_program(graph, ops_named(graph, {"up", "up_bias", "gelu", "down"})),
              HasSubstr("second mainloop"));
}

TEST(ChainProducts, AreRefusedWithManyRows) {
  const ModelConfig model = chainable(test::tiny_llama());
  for (const Workload& work : {test::decode(9, 1, 40), test::forward(1, 64)}) {
    Block block{build_block(model, work), {}};
    interleave_gate_up().apply(block);
    EXPECT_FALSE(chain_products().applies(block.graph));
    // The same marks at a size where they are legal, with the rows of the other one.
    const Chain parts{ops_named(block.graph, {"gate_up", "swiglu"}),
                      ops_named(block.graph, {"down", "residual2"})};
    EXPECT_THAT(why_no_chain(block.graph, parts), HasSubstr("a chain takes 8 at most"));
  }
}

TEST(ChainProducts, AreRefusedWhereWidthsAreNoPieces) {
  ModelConfig model = chainable(test::tiny_llama());
  model.F = 324;
  Block block{build_block(model, test::decode(1, 1, 40)), {}};
  interleave_gate_up().apply(block);
  EXPECT_FALSE(chain_products().applies(block.graph));
}

// Somebody may write such a kernel by hand, and give it two programs that do not belong together.
TEST(ChainProducts, TwoProgramsThatDoNotBelongTogetherAreRefused) {
  const Graph graph = build_block(chainable(test::tiny_llama()), test::decode(2, 1, 40));
  Plan plan = make_custom_plan(graph, {"interleave_gate_up", "chain_products"},
                               {{"gate_up", "swiglu"}, {"swiglu", "down"}});
  const auto at = std::ranges::find(plan.kernels, "gate_up", &Kernel::name);
  ASSERT_NE(at, plan.kernels.end());
  EXPECT_EQ(why_not_handed_over(plan.graph, *at), "");
  Kernel swapped = *at;
  std::swap(swapped.phases[0], swapped.phases[1]);
  EXPECT_THAT(why_not_handed_over(plan.graph, swapped), HasSubstr("does not store all of"));
  at->phases.pop_back();
  EXPECT_THAT(why_not_handed_over(plan.graph, *at), HasSubstr("has 1 programs"));
  EXPECT_THAT(check_plan(plan), Contains(HasSubstr("has 1 programs")));
}

// A norm needs whole rows of what lies between, so the attention's projection and the next product
// are no chain.
TEST(ChainProducts, DoNotGoThroughANorm) {
  const Graph graph = chained(chainable(test::tiny_llama()), test::decode(2, 1, 40));
  for (const Op& op : graph.ops()) {
    const auto* layout = op.attributes.get<GemmLayout>();
    EXPECT_EQ(layout != nullptr && layout->chained, op.name == "down") << op.name;
  }
}

// The first product's sums cover columns that several thread blocks make.
TEST(ChainProducts, RefuseSumsBetweenTheProducts) {
  const Graph graph = chained(chainable(test::tiny_llama()), test::decode(2, 1, 40));
  EXPECT_EQ(why_no_program(graph, ops_named(graph, {"gate_up", "swiglu", "down"})), "");
  EXPECT_THAT(why_no_program(graph, ops_named(graph, {"oproj", "gate_up", "swiglu", "down"})),
              Not(IsEmpty()));
}

}  // namespace
}  // namespace fuseline
