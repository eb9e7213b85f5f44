// Two products in one kernel, executed: right against fp64, with the bytes that the simulator asks
// for, and nothing of what stays on chip.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>

#include <fmt/format.h>

#include "model/chain.h"
#include "model/policy.h"
#include "sim/executor/verification.h"
#include "sim/gpu/plan_target.h"
#include "tests/model/plan_support.h"
#include "tests/sim/executor/executor_support.h"

namespace fuseline::executor {
namespace {

ModelConfig in_pieces(ModelConfig c) {
  c.D = 264;   // three tiles of 128 columns, the last with 8
  c.F = 2096;  // two pieces of 8 columns for most multiprocessors, an odd number of pieces
  c.H = c.Hkv = 6;
  c.d = 44;
  return c;
}

struct Case {
  const char* name;
  ModelConfig model;
  std::vector<std::string> rewrites;
  std::vector<OnChipEdge> on_chip;
  const char* first;
};

std::vector<Case> cases() {
  return {{"llama",
           in_pieces(test::tiny_llama()),
           {"interleave_gate_up", "chain_products"},
           {{"gate_up", "swiglu"}, {"swiglu", "down"}, {"down", "residual2"}},
           "gate_up"},
          {"llama with statistics",
           in_pieces(test::tiny_llama()),
           {"split_norm", "rotate_statistics", "interleave_gate_up", "chain_products"},
           {{"gate_up", "gate_up_scale"},
            {"gate_up_scale", "swiglu"},
            {"swiglu", "down"},
            {"down", "residual2"},
            {"residual2", "stats_next"}},
           "gate_up"},
          {"gpt",
           in_pieces(test::tiny_gpt()),
           {"chain_products"},
           {{"up", "up_bias"}, {"up_bias", "gelu"}, {"gelu", "down"}, {"down", "down_bias"}},
           "up"}};
}

TEST(Chain, IsRightAndMovesWhatIsPredicted) {
  for (const Case& c : cases()) {
    for (const std::int64_t batch : {1, 3, 8}) {
      SCOPED_TRACE(fmt::format("{}, batch {}", c.name, batch));
      const Workload work = test::decode(batch, 1, 40);
      const Gpu& gpu = executor_gpu();
      const Plan plan =
          make_custom_plan(build_block(c.model, work), c.rewrites, c.on_chip, plan_target(gpu));
      const auto kernel = std::ranges::find(plan.kernels, c.first, &Kernel::name);
      ASSERT_NE(kernel, plan.kernels.end());
      const auto kept = handed_over(*kernel);
      ASSERT_TRUE(kept.has_value());
      VerifyOptions options;
      options.plan = std::make_shared<const Plan>(plan);
      const Verification v = verify(c.model, work, {"custom"}, gpu, options);
      ASSERT_EQ(v.policies.size(), 1U);
      EXPECT_TRUE(v.policies[0].passed());
      EXPECT_TRUE(v.policies[0].bytes_equal());
      EXPECT_EQ(v.policies[0].launches, std::ssize(plan.kernels));
      for (const CountedKernel& k : v.policies[0].kernels) {
        if (k.name != c.first) continue;
        for (const RequestedBytes& r : k.counted) EXPECT_NE(r.tensor, kept->tensor);
        // Each weight once.
        for (const Program& program : kernel->phases) {
          const Operand& b = std::get<GemmMainloop>(program.mainloop).b;
          const auto moved = std::ranges::find(k.counted, b.tensor, &RequestedBytes::tensor);
          ASSERT_NE(moved, k.counted.end());
          EXPECT_EQ(moved->loaded.value(), b.rows * b.cols * 2);
        }
      }
    }
  }
}

// The part of one of two thread blocks is left out of the last tile: y is wrong by that much.
TEST(Chain, APartThatWasNotComputedIsSeen) {
  Case c = cases()[0];
  c.model.D = 256;
  c.model.F = 2 * chained_piece;
  c.model.H = c.model.Hkv = 4;
  c.model.d = 64;
  const Workload work = test::decode(2, 1, 40);
  VerifyOptions options;
  options.plan = std::make_shared<const Plan>(make_custom_plan(
      build_block(c.model, work), c.rewrites, c.on_chip, plan_target(executor_gpu())));
  EXPECT_TRUE(verify(c.model, work, {"custom"}, executor_gpu(), options).passed());
  options.fault = FaultKind::stale_tile;
  EXPECT_FALSE(verify(c.model, work, {"custom"}, executor_gpu(), options).passed());
}

}  // namespace
}  // namespace fuseline::executor
