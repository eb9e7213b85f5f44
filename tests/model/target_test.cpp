#include "model/target.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "model/policy.h"
#include "model/why_not.h"
#include "tests/model/plan_support.h"

namespace fuseline {
namespace {

bool has_reason(const Plan& plan, const std::string& words) {
  return std::any_of(plan.notes.begin(), plan.notes.end(), [&words](const FusionNote& note) {
    return note.reason.find(words) != std::string::npos;
  });
}

TEST(Target, TheDefaultIsThatOfComputeCapability90) {
  const Target target;
  EXPECT_EQ(target.stage_bytes(), 96 * 1024);
  EXPECT_EQ(target.tile_bytes(), 32 * 1024);
  EXPECT_EQ(target.operand_tiles(), 4);
}

TEST(Target, ReasonsNameItsSharedMemory) {
  const auto plan = [](const Target& target) {
    return make_plan("torch-compile", test::llama2_7b(), test::forward(1, 2048), target);
  };
  EXPECT_TRUE(has_reason(plan({}), "a thread block has 227)"));
  Target ampere;
  ampere.shared_bytes_per_block = 163 * 1024;
  EXPECT_TRUE(has_reason(plan(ampere), "a thread block has 163)"));
}

// An epilogue that reads a tile, the residual stream, needs room for it beside the stages.
TEST(Target, AnEpilogueReadsNoMoreTilesThanFit) {
  const Plan plan = make_plan("coda", test::llama2_7b(), test::forward(1, 2048));
  Target full;
  full.shared_bytes_per_block = full.stage_bytes();
  int refused = 0;
  for (const Kernel& kernel : plan.kernels) {
    EXPECT_EQ(why_no_program(plan.graph, kernel.ops), "") << kernel.name;
    const std::string reason = why_no_program(plan.graph, kernel.ops, full);
    if (reason.empty()) continue;
    ++refused;
    EXPECT_NE(reason.find("room for 0"), std::string::npos) << reason;
  }
  EXPECT_GT(refused, 0);
  const Plan apart = make_plan("coda", test::llama2_7b(), test::forward(1, 2048), full);
  EXPECT_GT(apart.kernels.size(), plan.kernels.size());
}

}  // namespace
}  // namespace fuseline
