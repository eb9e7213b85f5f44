// Instructions of our row kernels beside the size of their machine code for sm_90a (CUDA 13.0).
#include "sim/kernels/row_instructions.h"

#include <algorithm>
#include <string>
#include <variant>

#include <gtest/gtest.h>

#include "model/config/model_files.h"
#include "model/plan.h"
#include "model/policy.h"

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

double count_of(const Counted& c) {
  const Workload w{
      .phase = c.phase, .batch = c.batch, .seq = c.seq, .context = 0, .dtype = Dtype::bf16};
  const Plan plan = make_plan(c.policy, load_model(c.model), w);
  const auto kernel = std::ranges::find(plan.kernels, c.kernel, &Kernel::name);
  if (kernel == plan.kernels.end()) return 0;
  const Program& program = kernel->phases.front();
  const auto* row = std::get_if<RowMainloop>(&program.mainloop);
  return row == nullptr ? 0 : row_instructions(program, row->rows, row->cols);
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
    EXPECT_NEAR(count_of(c), c.code, kMargin * c.code) << c.model << " " << c.kernel;
}

TEST(RowInstructions, AProductAndItsSumAreOne) {
  // Rows that are only summed up issue far fewer than a norm, which stores what it makes of them.
  const Counted norm{"llama2-7b", "per-operator", Phase::forward, 1, 2048, "norm1", 0};
  const Counted sums{"gpt-j-6b", "coda", Phase::train, 1, 904, "gamma_w_qkv_beta_w_qkv", 0};
  EXPECT_LT(count_of(sums) + 5, count_of(norm));
}

}  // namespace
}  // namespace fuseline
