// Blocks timed by replays: by one that is run again, or by layers that take turns.
#include <gtest/gtest.h>

#include "model/config/model_files.h"
#include "model/policy.h"
#include "sim/block/estimate.h"
#include "sim/gpu/gpu.h"
#include "sim/gpu/plan_target.h"
#include "tests/sim/sim_support.h"

namespace fuseline {
namespace {

Bytes hbm_bytes(const PlanEstimate& e) {
  Bytes all;
  for (const KernelEstimate& k : e.kernels) all += k.hbm_read + k.hbm_write;
  return all;
}

// ViT-L's weights, 25 MB, stay in an H200's L2 of 60 MiB where one block runs again and again.
// `fuseline measure` takes as many layers by turns as L2 cannot hold, and HBM reads all weights.
TEST(Replay, LayersThatTakeTurnsReadTheirWeights) {
  const Gpu gpu = load_gpu("h200");
  const ModelConfig model = load_model("vit-l");
  const Plan plan = make_plan("coda", model, forward(1, 257), plan_target(gpu));
  std::int64_t weights = 0;
  for (const Tensor& t : plan.graph.tensors())
    if (t.role == Role::weight) weights += t.rows * t.cols * 2;
  ASSERT_GT(weights, 20'000'000);
  const auto bytes = [&](bool rotating) {
    return hbm_bytes(simulate(plan, gpu, Fidelity::hierarchy,
                              {.replay = true, .rotating = rotating, .runs = 3}));
  };
  EXPECT_LT(bytes(false).value(), weights);
  EXPECT_GE(bytes(true).value(), weights);
}

// What all layers read, the input, is found in L2 by both.
TEST(Replay, LayersThatTakeTurnsReadOneInput) {
  const Gpu gpu = load_gpu("h200");
  const ModelConfig model = load_model("vit-l");
  const Plan plan = make_plan("unfused", model, forward(1, 257), plan_target(gpu));
  const PlanEstimate one = simulate(plan, gpu, Fidelity::hierarchy, {.replay = true, .runs = 3});
  const PlanEstimate turns =
      simulate(plan, gpu, Fidelity::hierarchy, {.replay = true, .rotating = true, .runs = 3});
  ASSERT_EQ(one.kernels.front().name, "norm1");
  const Bytes norm_weights(2 * model.D * 2);  // gamma and beta in bf16: a layer's own
  EXPECT_LE(turns.kernels.front().hbm_read, one.kernels.front().hbm_read + norm_weights);
}

}  // namespace
}  // namespace fuseline
