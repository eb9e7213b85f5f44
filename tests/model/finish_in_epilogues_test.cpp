// Partial statistics that tiles sum themselves: which kernels that allows, and what they load.
#include "model/rewrites/finish_in_epilogues.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "model/lower.h"
#include "model/primitives/primitives.h"
#include "model/rewrites/split_norm.h"
#include "model/why_not.h"
#include "tests/model/plan_support.h"

namespace fuseline {
namespace {

using ::testing::HasSubstr;

Graph split(const ModelConfig& model, bool in_epilogues) {
  Block block{build_block(model, test::forward(2, 5)), {}};
  split_norm().apply(block);
  if (in_epilogues) {
    EXPECT_TRUE(finish_in_epilogues().applies(block.graph));
    finish_in_epilogues().apply(block);
  }
  return block.graph;
}

std::vector<OpId> named(const Graph& graph, const std::vector<std::string>& names) {
  std::vector<OpId> ops;
  for (const std::string& name : names) ops.push_back(*graph.find_op(name));
  return ops;
}

std::vector<LoadRowSums> sums_of(const Program& program) {
  std::vector<LoadRowSums> all;
  for (const Primitive& p : program.body)
    if (const auto* sums = p.as<LoadRowSums>()) all.push_back(*sums);
  return all;
}

// Beside a product that does not take it, the statistic would be made by every tile and used by
// none.
TEST(FinishInEpilogues, NeedsSomethingThatTakesTheStatistic) {
  const Graph graph = split(test::tiny_llama(), true);
  EXPECT_THAT(why_no_program(graph, named(graph, {"finish_norm1", "qkv"}), Target{}),
              HasSubstr("makes nothing that this kernel takes"));
}

TEST(FinishInEpilogues, LetsAProductSumThePartialsOfItsRows) {
  const std::vector<std::string> kernel = {"finish_norm1", "qkv", "qkv_scale"};
  const Graph apart = split(test::tiny_llama(), false);
  EXPECT_THAT(why_no_program(apart, named(apart, kernel), Target{}),
              HasSubstr("needs the partials of all column tiles"));

  const Graph graph = split(test::tiny_llama(), true);
  const std::vector<OpId> ops = named(graph, kernel);
  EXPECT_EQ(why_no_program(graph, ops, Target{}), "");
  const Program program = lower(graph, "qkv", ops);
  EXPECT_THAT(check_program(graph, program), testing::IsEmpty());
  const std::vector<LoadRowSums> sums = sums_of(program);
  ASSERT_EQ(sums.size(), 1U);
  EXPECT_EQ(sums[0].from.tensor, graph.op(ops[0]).reads[0].tensor);
  const bool stores = std::ranges::any_of(program.body, [&](const Primitive& p) {
    const auto* store = p.as<StoreVector>();
    return store != nullptr && store->to.tensor == graph.op(ops[0]).writes[0].tensor;
  });
  EXPECT_FALSE(stores) << "nobody else reads the statistics";
}

// Its moments alternate: one sum of the even numbers, one of the odd ones.
TEST(FinishInEpilogues, SumsBothMomentsOfALayerNorm) {
  const Graph graph = split(test::tiny_gpt(), true);
  const std::vector<OpId> ops = named(graph, {"finish_norm1", "qkv", "qkv_norm"});
  EXPECT_EQ(why_no_program(graph, ops, Target{}), "");
  const std::vector<LoadRowSums> sums = sums_of(lower(graph, "qkv", ops));
  ASSERT_EQ(sums.size(), 2U);
  EXPECT_EQ(sums[0].every, 2);
  EXPECT_EQ(sums[0].first, 0);
  EXPECT_EQ(sums[1].first, 1);
}

// Other tiles make some of the partials that a tile would sum.
TEST(FinishInEpilogues, RefusesPartialsOfTheSameKernel) {
  const Graph graph = split(test::tiny_llama(), true);
  const std::vector<OpId> ops = named(graph, {"oproj", "residual1", "stats_norm2", "finish_norm2"});
  EXPECT_THAT(why_no_program(graph, ops, Target{}),
              HasSubstr("needs the partials of all column tiles"));
}

// As before, a finisher may be a kernel of its own, which has the rows.
TEST(FinishInEpilogues, LeavesAFinisherAKernelOfItsOwn) {
  for (const ModelConfig& model : {test::tiny_llama(), test::tiny_gpt()}) {
    const Graph apart = split(model, false), graph = split(model, true);
    const std::vector<OpId> ops = named(graph, {"finish_norm1"});
    EXPECT_EQ(print_program(graph, lower(graph, "k", ops)),
              print_program(apart, lower(apart, "k", named(apart, {"finish_norm1"}))));
  }
}

}  // namespace
}  // namespace fuseline
