// The tile that a prediction is made for is the one that the kernel on Hopper has. Where they
// differ, the prediction is of another kernel: gradients of experts' weights were predicted in
// tiles of 64 rows, whose kernel has 128, a third too fast.
#include <gtest/gtest.h>

#include <string>

#include "cuda/emit/kernel_source.h"
#include "cuda/emit/plan_source.h"
#include "tests/model/plan_support.h"
#include "tests/model/small_experts.h"

namespace fuseline::cuda {
namespace {

// Kernels whose products were looked at.
int expect_predicted_tiles(const ModelConfig& model, const Workload& workload) {
  const Gpu gpu = load_gpu("h200");
  int seen = 0;
  for (const char* policy : {"coda", "unfused"}) {
    const Plan plan = make_plan(policy, model, workload);
    for (const Kernel& kernel : plan.kernels) {
      if (kernel.implementation != Implementation::epilogue_gemm) continue;  // the library's
      const auto* gemm = std::get_if<GemmMainloop>(&kernel.phases.front().mainloop);
      if (kernel.phases.size() != 1 || gemm == nullptr || gemm->weight.quantised()) continue;
      SCOPED_TRACE(plan.policy + " " + kernel.name + " of " + model.name);
      const Program& program = kernel.phases.front();
      const GemmTile predicted = own_tile(plan, program, gpu);
      const EpilogueSource epilogue = epilogue_source(plan.graph, program, "Epilogue");
      const GemmConfig config = gemm_config(program, epilogue, predicted, SmTarget::sm_90a);
      EXPECT_EQ(config.tile_m, predicted.m);
      EXPECT_EQ(config.tile_n, predicted.n);
      EXPECT_EQ(config.cluster, predicted.turned() ? predicted.cluster_n : predicted.cluster_m);
      EXPECT_EQ(config.cluster_k, predicted.cluster_k);
      ++seen;
    }
  }
  return seen;
}

TEST(TilesThatRun, OfExpertsAreThePredictedOnes) {
  EXPECT_GT(expect_predicted_tiles(test::small_experts(), test::train(3, 37)), 10);
  EXPECT_GT(expect_predicted_tiles(load_model("qwen3-30b-a3b"), test::train(1, 1100)), 12);
  EXPECT_GT(expect_predicted_tiles(load_model("mixtral-8x7b"), test::decode(8, 1, 1000)), 5);
}

TEST(TilesThatRun, OfDenseBlocksAreThePredictedOnes) {
  for (const char* model : {"llama3-8b", "gpt2-xl", "vit-l"}) {
    EXPECT_GT(expect_predicted_tiles(load_model(model), test::train(1, 1336)), 6);
    EXPECT_GT(expect_predicted_tiles(load_model(model), test::forward(3, 420)), 3);
  }
}

}  // namespace
}  // namespace fuseline::cuda
