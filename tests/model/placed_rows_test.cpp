// Rows at places that the data decides: what makes them is another kernel, also where one token has
// one expert and both have as many rows.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "model/blocks/block.h"
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
    for (const char* maker : {"weigh", "sort"})
      EXPECT_THAT(why_no_program(plan.graph, {op(maker), op("sum")}, {}),
                  testing::AnyOf(HasSubstr("sum reads rows of other tiles"), HasSubstr("sorts")))
          << maker << " of " << k;
    EXPECT_THAT(why_no_program(plan.graph, {op("expert_down"), op("weigh"), op("sum")}, {}),
                HasSubstr("sum reads rows of other tiles, which no mainloop's epilogue has"));
    EXPECT_EQ(why_no_program(plan.graph, {op("sum"), op("residual2")}, {}), "");
  }
  // Beside rows that are others.
  ModelConfig experts = test::small_experts();
  const Plan plan = make_plan("coda", experts, test::forward(1, 20));
  EXPECT_THAT(why_no_program(
                  plan.graph,
                  {plan.graph.find_op("permute").value(), plan.graph.find_op("sum").value()}, {}),
              testing::AnyOf(HasSubstr("different rows"), HasSubstr("gathers rows")));
}

}  // namespace
}  // namespace fuseline
