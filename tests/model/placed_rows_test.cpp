// Rows at places that the data decides: what makes them is another kernel, also where one token has
// one expert and both have as many rows.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "model/blocks/block.h"
#include "model/operators/all_operators.h"
#include "model/policy.h"
#include "model/why_not.h"
#include "tests/model/plan_support.h"
#include "tests/model/small_experts.h"

namespace fuseline {
namespace {

using ::testing::HasSubstr;

TEST(PlacedRows, AreMadeByAnotherKernel) {
  for (const std::int64_t k : {1, 3}) {
    ModelConfig experts = test::small_experts();
    experts.values["k"] = k;
    const Plan plan = make_plan("coda", experts, test::forward(1, 20));
    const auto op = [&](const char* name) { return plan.graph.find_op(name).value(); };
    EXPECT_THAT(
        why_no_program(plan.graph, {op("weigh"), op("sum")}, {}),
        HasSubstr("sum reads rows of other tiles, which other thread blocks of weigh make"));
    EXPECT_THAT(why_no_program(plan.graph, {op("expert_down"), op("weigh"), op("sum")}, {}),
                HasSubstr("sum reads rows of other tiles, which no mainloop's epilogue has"));
    EXPECT_EQ(why_no_program(plan.graph, {op("sum"), op("residual2")}, {}), "");
  }
  // Beside rows that are others: the weighed rows of experts, and sums of them.
  ModelConfig experts = test::small_experts();
  Graph graph = make_plan("coda", experts, test::forward(1, 20)).graph;
  const Op& sum = graph.op(graph.find_op("sum").value());
  const Operand weighed = sum.reads[0];
  const Operand negated = graph.whole(graph.add_tensor(
      {.name = "negated", .role = Role::activation, .rows = weighed.rows, .cols = weighed.cols}));
  const OpId negate = graph.add_op({"negate", operators::silu, {weighed}, {negated}, {}, "s"});
  EXPECT_THAT(why_no_program(graph, {graph.find_op("sum").value(), negate}, {}),
              HasSubstr("sum and negate have different rows"));
}

}  // namespace
}  // namespace fuseline
