// The kernel ahead of the first of equal layers.
#include "cuda/export/entry_program.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "model/policy.h"
#include "sim/gpu/plan_target.h"
#include "tests/model/plan_support.h"

namespace fuseline::cuda {
namespace {

using testing::HasSubstr;

Plan plan_of_block(const ModelConfig& config, Phase phase = Phase::forward,
                   const std::string& policy = "coda") {
  const Workload work{.phase = phase, .batch = 1, .seq = 64};
  return make_plan(policy, config, work, plan_target(load_gpu("h200")));
}

std::string text_of(const EntryProgram& entry) {
  return print_program(entry.plan.graph, entry.plan.kernels.front().phases.front());
}

TEST(EntryProgram, LeavesTheSquaresOfAnRmsNorm) {
  const auto entry = entry_program(plan_of_block(test::tiny_llama()));
  ASSERT_TRUE(entry);
  EXPECT_THAT(entry->makes, testing::ElementsAre("x_stats"));
  EXPECT_THAT(text_of(*entry), HasSubstr("= sum_squares(x)"));
}

// A LayerNorm takes sums beside the squares: half of the numbers would be missing.
TEST(EntryProgram, LeavesSumsAndSquaresOfALayerNorm) {
  const auto entry = entry_program(plan_of_block(test::tiny_gpt()));
  ASSERT_TRUE(entry);
  EXPECT_THAT(text_of(*entry), HasSubstr("= sum, sum_squares(x)"));
}

TEST(EntryProgram, WeighsTheInputWhereTrainingKeepsTheNormsWeight) {
  const auto entry = entry_program(plan_of_block(test::tiny_llama(), Phase::train));
  ASSERT_TRUE(entry);
  EXPECT_THAT(entry->makes, testing::UnorderedElementsAre("x_stats", "x_weighted"));
  EXPECT_THAT(text_of(*entry), HasSubstr("load_cols w_norm1"));
}

TEST(EntryProgram, PlansThatTakeWhatTheBlockTakesNeedNone) {
  EXPECT_FALSE(entry_program(plan_of_block(test::tiny_llama(), Phase::forward, "per-operator")));
}

TEST(EntryProgram, WhatNobodyKnowsIsRefused) {
  Plan plan = plan_of_block(test::tiny_llama());
  plan.preparation = {};
  try {
    (void)entry_program(plan);
    FAIL() << "nothing says how x_stats are made";
  } catch (const InputError& error) {
    EXPECT_THAT(error.what(), HasSubstr("x_stats"));
  }
}

}  // namespace
}  // namespace fuseline::cuda
