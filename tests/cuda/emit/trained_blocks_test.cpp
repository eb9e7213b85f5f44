// Kernels of training become machine code for both architectures: modulation, experts,
// convolutions and scans. What has no kernel yet is refused by name.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>

#include "cuda/emit/not_built.h"
#include "cuda/emit/plan_source.h"
#include "tests/cuda/emit/compile_support.h"
#include "tests/model/small_experts.h"

namespace fuseline::cuda {
namespace {

class SlowTrainedBlocks : public test::CompileTest {
 protected:
  // Compiles what has kernels; returns what has none.
  std::set<std::string> compile(const ModelConfig& model, const Workload& work,
                                const std::vector<std::string>& policies,
                                const std::vector<std::string>& gpus = {"h200", "a100-sxm-80gb"}) {
    std::set<std::string> missing;
    for (const std::string& gpu_name : gpus) {
      const Gpu gpu = load_gpu(gpu_name);
      const SmTarget target = target_of(gpu);
      if (!makes(target)) continue;
      for (const std::string& policy : policies) {
        const Plan plan = make_plan(policy, model, work);
        for (const Kernel& kernel : plan.kernels) {
          SCOPED_TRACE(model.name + ' ' + policy + ' ' + kernel.name);
          bool built = true;
          for (const Program& program : kernel.phases)
            if (const std::string what = not_built(program); !what.empty()) {
              missing.insert(what);
              built = false;
            }
          if (!built) continue;
          for (const Source& source : kernel_sources(plan, kernel, gpu, target))
            expect_compiles(source, source.name, target, {});
        }
      }
    }
    return missing;
  }
};

const std::set<std::string> kAll{};
const std::vector<std::string> kUnfused{"unfused", "per-operator"};

TEST_F(SlowTrainedBlocks, OfModulationCompile) {
  EXPECT_EQ(compile(load_model("sd3-medium"), fuseline::test::train(2, 256), {"coda"}), kAll);
}

TEST_F(SlowTrainedBlocks, OfExpertsCompile) {
  EXPECT_EQ(compile(fuseline::test::small_experts(), fuseline::test::train(3, 37), {"coda"}), kAll);
  EXPECT_EQ(compile(load_model("mixtral-8x7b"), fuseline::test::train(1, 512), {"coda"}, {"h200"}),
            kAll);
}

TEST_F(SlowTrainedBlocks, OfConvolutionsAndScansCompile) {
  for (const char* model : {"mamba2-2.7b", "mamba-2.8b"})
    EXPECT_EQ(compile(load_model(model), fuseline::test::train(1, 512), {"coda"}), kAll) << model;
}

// Scores that are capped, scores with a bias, values narrower than keys.
TEST_F(SlowTrainedBlocks, OfUnusualAttentionCompile) {
  for (const char* model : {"gemma2-9b", "t5-large", "deepseek-v2-lite"})
    EXPECT_EQ(compile(load_model(model), fuseline::test::train(1, 512), {"coda"}, {"h200"}), kAll)
        << model;
}

// The kernels of policies with more launches, and other models of the same kinds.
class LongTrainedBlocks : public SlowTrainedBlocks {};

TEST_F(LongTrainedBlocks, OfModulationCompile) {
  EXPECT_EQ(compile(load_model("sd3-medium"), fuseline::test::train(2, 256), kUnfused), kAll);
  EXPECT_EQ(compile(load_model("sd3-medium-qknorm"), fuseline::test::train(2, 256), {"coda"}),
            kAll);
}

TEST_F(LongTrainedBlocks, OfExpertsCompile) {
  EXPECT_EQ(compile(fuseline::test::small_experts(), fuseline::test::train(3, 37), kUnfused), kAll);
  EXPECT_EQ(compile(load_model("mixtral-8x7b"), fuseline::test::train(1, 512), kUnfused), kAll);
  EXPECT_EQ(compile(load_model("qwen3-30b-a3b"), fuseline::test::train(1, 512), {"coda"}), kAll);
}

TEST_F(LongTrainedBlocks, OfConvolutionsAndScansCompile) {
  for (const char* model : {"mamba2-2.7b", "mamba-2.8b", "jamba"})
    EXPECT_EQ(compile(load_model(model), fuseline::test::train(1, 512), kUnfused), kAll) << model;
}

}  // namespace
}  // namespace fuseline::cuda
