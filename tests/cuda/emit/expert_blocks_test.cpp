// Every kernel of blocks with experts becomes machine code for both architectures.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cuda/emit/kernel_source.h"
#include "cuda/emit/plan_source.h"
#include "cuda/emit/stream_source.h"
#include "sim/kernels/gemm_library.h"
#include "tests/cuda/emit/compile_support.h"
#include "tests/model/plan_support.h"
#include "tests/model/small_experts.h"

namespace fuseline::cuda {
namespace {

using testing::HasSubstr;

constexpr const char* kGpus[] = {"h200", "a100-sxm-80gb"};
// What runs blocks on a real GPU, of each kind of plan.
const std::vector<std::string> kPolicies = {"unfused",       "eager",        "per-operator",
                                            "torch-compile", "tensorrt-llm", "coda"};

class SlowExpertSources : public test::CompileTest {
 protected:
  void expect_plans_compile(const ModelConfig& model, const Workload& workload,
                            const std::vector<std::string>& policies = kPolicies) {
    for (const char* gpu_name : kGpus) {
      const Gpu gpu = load_gpu(gpu_name);
      const SmTarget target = target_of(gpu);
      if (!makes(target)) continue;
      for (const std::string& policy : policies) {
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

// Models at their own sizes: hundreds of kernels each.
class LongExpertSources : public SlowExpertSources {};

TEST_F(LongExpertSources, OfMixtralCompile) {
  for (const Phase phase : {Phase::forward, Phase::decode})
    expect_plans_compile(load_model("mixtral-8x7b"), test::workload(phase));
}

TEST_F(LongExpertSources, OfQwen3Compile) {
  for (const Phase phase : {Phase::forward, Phase::decode})
    expect_plans_compile(load_model("qwen3-30b-a3b"), test::workload(phase));
}

TEST_F(SlowExpertSources, OfOddSizesCompile) {
  expect_plans_compile(fuseline::test::small_experts(), fuseline::test::forward(3, 37));
  expect_plans_compile(fuseline::test::small_experts(), fuseline::test::decode(3, 1, 50));
}

// More experts of a token than a row of scores has lanes, and than a warp has.
TEST_F(SlowExpertSources, OfManyExpertsCompile) {
  ModelConfig model = fuseline::test::small_experts();
  model.values["E"] = std::int64_t{64};
  for (const std::int64_t chosen : {11, 40}) {
    model.values["k"] = chosen;
    expect_plans_compile(model, fuseline::test::decode(3, 1, 60), {"coda"});
  }
}

// A token's only expert: gates and choices are vectors of one number a row then.
TEST_F(SlowExpertSources, OfOneExpertATokenCompile) {
  ModelConfig model = fuseline::test::small_experts();
  model.values["k"] = std::int64_t{1};
  expect_plans_compile(model, fuseline::test::decode(3, 1, 60), {"unfused", "coda"});
  expect_plans_compile(model, fuseline::test::train(3, 37), {"unfused", "coda"});
}

// Attention of a latent cache has no kernel yet, but its products and softmax have.
TEST_F(LongExpertSources, BehindALatentCacheCompile) {
  for (const Phase phase : {Phase::forward, Phase::decode})
    expect_plans_compile(load_model("deepseek-v2-lite"), test::workload(phase), {"unfused"});
  const ModelConfig small = fuseline::test::small_latent_experts();
  expect_plans_compile(small, fuseline::test::forward(3, 37), {"unfused"});
  expect_plans_compile(small, fuseline::test::decode(3, 1, 50), {"unfused"});
}

// On every tile that the mainloops have: behind the products are the epilogues of coda.
TEST_F(SlowExpertSources, OfEveryTileCompile) {
  const Plan plan =
      make_plan("coda", fuseline::test::small_experts(), fuseline::test::forward(3, 37));
  for (const SmTarget target : {SmTarget::sm_80, SmTarget::sm_90a}) {
    if (!makes(target)) continue;
    for (const char* name : {"expert_gate_up", "expert_down"})
      for (const std::int64_t m : {64, 128})
        for (const std::int64_t n : {64, 128, 256}) {
          const GemmKernelSource kernel =
              gemm_kernel_source(plan.graph, test::program_of(plan, name),
                                 {.m = m, .n = n, .cluster_m = 2}, target, "test");
          SCOPED_TRACE(kernel.source.text);
          expect_compiles(kernel.source, kernel.function, target,
                          {target == SmTarget::sm_80 ? "mma.sync" : "wgmma.mma_async"});
        }
  }
}

// Each group has a matrix of its own: no cluster shares one, and no product beside is meant.
TEST(ExpertSources, ProductsOfGroupsSayIt) {
  const Plan plan = make_plan("coda", load_model("mixtral-8x7b"), test::workload(Phase::forward));
  const auto kernel = [&](const char* name, SmTarget target) {
    return gemm_kernel_source(plan.graph, test::program_of(plan, name),
                              {.m = 128, .n = 256, .cluster_m = 2}, target, "test");
  };
  const GemmKernelSource ampere = kernel("expert_down", SmTarget::sm_80);
  EXPECT_TRUE(ampere.config.ragged);
  EXPECT_THAT(ampere.source.text, HasSubstr("Sm80Config<bf16, 256, false, false, false, true>;"));
  EXPECT_THAT(ampere.source.text, HasSubstr("load_numbers<2>(p.gates, p.order, place);"));
  const GemmKernelSource hopper = kernel("expert_down", SmTarget::sm_90a);
  EXPECT_TRUE(hopper.config.ragged);
  EXPECT_EQ(hopper.config.cluster, 1);
  EXPECT_THAT(hopper.source.text, HasSubstr("false, false, false, 1, 128, false, true>;"));
  EXPECT_FALSE(kernel("qkv", SmTarget::sm_90a).config.ragged);
  EXPECT_EQ(kernel("qkv", SmTarget::sm_90a).config.cluster, 2);
}

// A tile of 64 rows takes boxes that are about as high as the groups, and a high one takes one box.
TEST(ExpertSources, BoxesOfRowsAreAsHighAsGroups) {
  const auto rows = [&](const char* model, std::int64_t batch, std::int64_t m) {
    const Plan plan = make_plan("coda", load_model(model), fuseline::test::decode(batch, 1, 200));
    return gemm_kernel_source(plan.graph, test::program_of(plan, "expert_down"), {.m = m, .n = 64},
                              SmTarget::sm_90a, "test")
        .config.a_rows;
  };
  EXPECT_EQ(rows("mixtral-8x7b", 1, 64), 8) << "two groups of one row";
  EXPECT_EQ(rows("mixtral-8x7b", 64, 64), 16) << "eight groups of 16 rows";
  EXPECT_EQ(rows("mixtral-8x7b", 1024, 64), 64);
  EXPECT_EQ(rows("mixtral-8x7b", 1, 128), 128);
}

// The plan's own groups choose; a program without them takes the largest scores.
TEST(ExpertSources, RoutingSaysWhoChooses) {
  const Plan plan =
      make_plan("unfused", fuseline::test::small_experts(), fuseline::test::forward(3, 37));
  const auto text = [&](const Program& program) {
    return stream_kernel_source(plan.graph, program, "test").source.text;
  };
  Program choose = test::program_of(plan, "choose");
  EXPECT_THAT(text(choose),
              HasSubstr("choose_by_pattern<threads, 3, GateWeights::softmax>(in0, place, "
                        "1.00000000F, p.groups0);"));
  for (Primitive& p : choose.body)
    if (const auto* chosen = p.as<ChooseExperts>()) {
      ChooseExperts largest = *chosen;
      largest.choice.loads.groups.clear();
      largest.choice.weights = GateWeights::sigmoid;
      p = largest;
    }
  EXPECT_THAT(text(choose),
              HasSubstr("choose_largest<threads, 3, GateWeights::sigmoid>(in0, place, "
                        "1.00000000F);"));
  EXPECT_THAT(text(test::program_of(plan, "sort")),
              HasSubstr("count_places<3, 5>(p.keys0, place);"));
  EXPECT_THAT(text(test::program_of(plan, "permute")), HasSubstr("gather<3>(place, p.ids0)"));
  EXPECT_THAT(text(test::program_of(plan, "sum")),
              HasSubstr("gather_sum_of_places<3>(p.in0, p.ids0, place);"));
}

// What the sort stores beside its order is read where rows come back, in one kernel with what
// follows. Many keys of known experts are counted.
TEST(ExpertSources, PlacesThatAreStoredAreNotLookedFor) {
  const auto text = [](std::int64_t tokens, const char* kernel) {
    const Plan plan =
        make_plan("coda", fuseline::test::small_experts(), fuseline::test::forward(1, tokens));
    const StreamKernelSource source =
        stream_kernel_source(plan.graph, test::program_of(plan, kernel), "test");
    return std::pair(source.source.text, source.shape);
  };
  const auto [few, compared] = text(37, "sort");
  EXPECT_THAT(few, HasSubstr("sort_places<3>(p.keys0, place);"));
  EXPECT_THAT(few, HasSubstr("numbers_of(order)"));
  EXPECT_EQ(compared.least_lanes, 32);
  const auto [many, counted] = text(371, "sort");
  EXPECT_THAT(many, HasSubstr("count_places<3, 5>(p.keys0, place);"));
  EXPECT_EQ(counted.least_lanes, 1) << "every lane has rows of its own";
  EXPECT_EQ(counted.block_threads, 256);
  EXPECT_EQ(counted.units, 1);
  const auto [most, tall] = text(40000, "sort");
  EXPECT_EQ(tall.units, 4);
  const auto [sum, shape] = text(371, "sum_residual2");
  EXPECT_THAT(sum, HasSubstr("sum_places<3>(p.in0, p.ids0, place);"));
  EXPECT_EQ(shape.least_lanes, 16) << "of the sums of squares, and no more";
}

}  // namespace
}  // namespace fuseline::cuda
