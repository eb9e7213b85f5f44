// Instructions of our row kernels beside the size of their machine code for sm_90a (CUDA 13.0).
#include "sim/kernels/row_instructions.h"

#include <algorithm>
#include <string>
#include <variant>

#include <gtest/gtest.h>

#include "base/error.h"
#include "model/config/model_files.h"
#include "model/plan.h"
#include "model/policy.h"
#include "model/primitives/functions.h"
#include "model/primitives/primitives.h"

namespace fuseline {
namespace {

struct Counted {
  const char* model;
  const char* policy;
  Phase phase;
  std::int64_t batch, seq;
  const char* kernel;
  double code;  // instructions, for each element that a thread has
};

Program program_of(const Counted& c) {
  const Workload w{
      .phase = c.phase, .batch = c.batch, .seq = c.seq, .context = 0, .dtype = Dtype::bf16};
  const Plan plan = make_plan(c.policy, load_model(c.model), w);
  const auto kernel = std::ranges::find(plan.kernels, c.kernel, &Kernel::name);
  if (kernel == plan.kernels.end()) throw InternalError("no kernel " + std::string(c.kernel));
  return kernel->phases.front();
}

double count_of(const Program& program) {
  const auto& row = std::get<RowMainloop>(program.mainloop);
  return row_instructions(program, row.rows, row.cols);
}

TEST(RowInstructions, AreAboutThoseOfTheMachineCode) {
  constexpr double kMargin = 0.15;
  for (const Counted& c : {
           Counted{"llama2-7b", "per-operator", Phase::forward, 1, 2048, "norm1", 23.2},
           Counted{"phi3", "per-operator", Phase::forward, 1, 1400, "norm1", 23.5},
           Counted{"gpt2-xl", "per-operator", Phase::forward, 2, 776, "norm1", 26.7},
           Counted{"bert-large", "coda", Phase::forward, 5, 312, "norm1", 30.0},
           Counted{"gpt-j-6b", "coda", Phase::train, 1, 904, "gamma_w_up_beta_w_up", 17.5},
           Counted{"gpt-j-6b", "coda", Phase::train, 1, 904, "gamma_w_qkv_beta_w_qkv", 17.0},
           Counted{"gpt2-xl", "coda", Phase::train, 1, 904, "gamma_w_up_beta_w_up", 15.6},
           Counted{"gpt-j-6b", "coda", Phase::train, 1, 904, "d_dot", 31.0},
       })
    EXPECT_NEAR(count_of(program_of(c)), c.code, kMargin * c.code) << c.model << " " << c.kernel;
}

// GPT-J's norm's weight and bias meet the weights behind them: products whose one use is a sum. As
// sums of another kind they would be instructions of their own.
TEST(RowInstructions, AProductAndItsSumAreOne) {
  const Program fused =
      program_of({"gpt-j-6b", "coda", Phase::train, 1, 904, "gamma_w_qkv_beta_w_qkv", 0});
  Program apart = fused;
  double more = 0;
  for (Primitive& p : apart.body) {
    const auto* map = p.as<Map>();
    if (map == nullptr || map->fn != MapFn(maps::mul)) continue;
    Map other = *map;
    other.fn = MapFn(maps::sub);
    p = other;
    more += p.instructions();
  }
  EXPECT_GT(more, 0);
  EXPECT_DOUBLE_EQ(count_of(apart), count_of(fused) + more);
}

}  // namespace
}  // namespace fuseline
