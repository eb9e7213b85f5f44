// Every kernel of blocks with experts becomes machine code for both architectures.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cuda/emit/kernel_source.h"
#include "cuda/emit/plan_source.h"
#include "sim/kernels/gemm_library.h"
#include "tests/cuda/emit/compile_support.h"
#include "tests/model/plan_support.h"
#include "tests/model/small_experts.h"

namespace fuseline::cuda {
namespace {

using testing::HasSubstr;

constexpr const char* kGpus[] = {"h200", "a100-sxm-80gb"};
// What runs blocks on a real GPU, of each kind of plan.
constexpr const char* kPolicies[] = {"unfused",       "eager",        "per-operator",
                                     "torch-compile", "tensorrt-llm", "coda"};

const Program& program_of(const Plan& plan, const std::string& kernel) {
  const Kernel* found = fuseline::test::find_kernel(plan, kernel);
  if (found == nullptr) throw InternalError("no kernel " + kernel);
  return found->phases.at(0);
}

class SlowExpertSources : public test::CompileTest {
 protected:
  void expect_plans_compile(const ModelConfig& model, const Workload& workload) {
    for (const char* gpu_name : kGpus) {
      const Gpu gpu = load_gpu(gpu_name);
      const SmTarget target = target_of(gpu);
      if (!makes(target)) continue;
      for (const char* policy : kPolicies) {
        const Plan plan = make_plan(policy, model, workload);
        for (const Kernel& kernel : plan.kernels) {
          // Norms of heads are those of OpenBlocks; one with a rotation behind it spills 8 bytes.
          if (kernel.name.starts_with("norm_q_")) continue;
          SCOPED_TRACE(plan.policy + ' ' + kernel.name);
          for (const Source& source : kernel_sources(plan, kernel, gpu, target))
            expect_compiles(source, source.name, target, {});
        }
      }
    }
  }
};

TEST_F(SlowExpertSources, OfMixtralCompile) {
  for (const Phase phase : {Phase::forward, Phase::decode})
    expect_plans_compile(load_model("mixtral-8x7b"), test::workload(phase));
}

TEST_F(SlowExpertSources, OfQwen3Compile) {
  for (const Phase phase : {Phase::forward, Phase::decode})
    expect_plans_compile(load_model("qwen3-30b-a3b"), test::workload(phase));
}

TEST_F(SlowExpertSources, OfOddSizesCompile) {
  expect_plans_compile(fuseline::test::small_experts(), fuseline::test::forward(3, 37));
  expect_plans_compile(fuseline::test::small_experts(), fuseline::test::decode(3, 1, 50));
}

// Groups of rows take Ampere's mainloop on Hopper too, and every thread block finds its tile.
TEST(ExpertSources, ProductsOfGroupsSayIt) {
  const Plan plan = make_plan("coda", load_model("mixtral-8x7b"), test::workload(Phase::forward));
  for (const SmTarget target : {SmTarget::sm_80, SmTarget::sm_90a}) {
    const GemmKernelSource down = gemm_kernel_source(plan.graph, program_of(plan, "expert_down"),
                                                     {.m = 128, .n = 256}, target, "test");
    EXPECT_TRUE(down.config.ragged);
    EXPECT_THAT(down.source.text, HasSubstr("Sm80Config<bf16, 256, false, false, false, true>;"));
    EXPECT_THAT(down.source.text, HasSubstr("load_numbers<2>(p.gates, p.order, place);"));
  }
  const GemmKernelSource qkv = gemm_kernel_source(plan.graph, program_of(plan, "qkv"),
                                                  {.m = 128, .n = 256}, SmTarget::sm_90a, "test");
  EXPECT_FALSE(qkv.config.ragged);
  EXPECT_EQ(qkv.config.architecture, SmTarget::sm_90a);
}

}  // namespace
}  // namespace fuseline::cuda
