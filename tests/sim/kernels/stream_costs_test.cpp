// What the functions of element-wise kernels cost: the exact GELU issues more than that with tanh.
#include "sim/kernels/stream_costs.h"

#include <gtest/gtest.h>

#include <string>

#include "model/config/model_files.h"
#include "model/plan.h"
#include "model/policy.h"
#include "sim/block/estimate.h"
#include "sim/gpu/gpu.h"

namespace fuseline {
namespace {

double kernel_us(const std::string& model, Phase phase, std::int64_t batch, std::int64_t seq,
                 const std::string& kernel) {
  const Workload w{.phase = phase, .batch = batch, .seq = seq, .context = 0, .dtype = Dtype::bf16};
  const PlanEstimate e = simulate(make_plan("per-operator", load_model(model), w), load_gpu("h200"),
                                  Fidelity::hierarchy);
  for (const KernelEstimate& k : e.kernels)
    if (k.name == kernel) return to_us(k.time);
  ADD_FAILURE() << "no kernel " << kernel;
  return 0;
}

// Measured on an H200 (scenarios/measurements/h200-kernels-third and h200-kernels-second).
TEST(StreamCosts, TheErrorFunctionTakesItsInstructions) {
  EXPECT_NEAR(kernel_us("bert-large", Phase::forward, 5, 312, "gelu"), 10.4, 0.1 * 10.4);
  EXPECT_NEAR(kernel_us("vit-l", Phase::forward, 4, 400, "gelu"), 11.4, 0.1 * 11.4);
  EXPECT_NEAR(kernel_us("bert-large", Phase::train, 2, 384, "gelu"), 6.8, 0.1 * 6.8);
  EXPECT_NEAR(kernel_us("vit-l", Phase::train, 3, 257, "d_gelu"), 8.6, 0.15 * 8.6);
}

TEST(StreamCosts, TheExactGeluIssuesMoreThanTheOtherOne) {
  const StreamConstants& c = load_gpu("h200").constants.stream;
  EXPECT_GT(c.erf_instructions, c.gelu_instructions);
  EXPECT_GT(c.erf_slope_instructions, c.erf_instructions);
}

}  // namespace
}  // namespace fuseline
