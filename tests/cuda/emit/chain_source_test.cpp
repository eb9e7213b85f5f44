// Chains of two products become machine code for both architectures, without spills.
#include "cuda/emit/chain_source.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "cuda/emit/plan_source.h"
#include "model/blocks/block.h"
#include "model/chain.h"
#include "model/policy.h"
#include "sim/gpu/plan_target.h"
#include "tests/cuda/emit/compile_support.h"

namespace fuseline::cuda {
namespace {

struct Case {
  const char* model;
  const char* first;
  std::vector<std::string> rewrites;
  std::vector<OnChipEdge> on_chip;
};

std::vector<Case> cases() {
  return {{"tinyllama",
           "gate_up",
           {"split_norm", "finish_in_epilogues", "rotate_statistics", "interleave_gate_up",
            "chain_products"},
           {{"gate_up", "gate_up_scale"},
            {"finish_norm2", "gate_up_scale"},
            {"gate_up_scale", "swiglu"},
            {"swiglu", "down"},
            {"down", "residual2"},
            {"residual2", "stats_next"}}},
          {"gpt2-xl",
           "up",
           {"chain_products"},
           {{"up", "up_bias"}, {"up_bias", "gelu"}, {"gelu", "down"}}}};
}

Plan plan_of(const Case& c, const Gpu& gpu) {
  const Workload work{.phase = Phase::decode, .batch = 2, .seq = 1, .context = 1024};
  return make_custom_plan(build_block(load_model(c.model), work), c.rewrites, c.on_chip,
                          plan_target(gpu));
}

const Kernel& chain_in(const Plan& plan) {
  const auto found = std::ranges::find_if(
      plan.kernels, [](const Kernel& k) { return handed_over(k).has_value(); });
  if (found == plan.kernels.end()) throw InternalError("the plan has no chain");
  return *found;
}

class SlowChainSource : public test::CompileTest {};

TEST_F(SlowChainSource, Compiles) {
  for (const Case& c : cases()) {
    for (const char* name : {"h200", "a100-sxm-80gb"}) {
      SCOPED_TRACE(std::string(c.model) + " " + name);
      const Gpu gpu = load_gpu(name);
      const SmTarget target = target_of(gpu);
      if (!makes(target)) continue;
      const Plan plan = plan_of(c, gpu);
      const std::vector<Source> sources = kernel_sources(plan, chain_in(plan), gpu, target);
      ASSERT_EQ(sources.size(), 1U);
      expect_compiles(sources[0], chain_in(plan).name, target,
                      {"mma.sync", "ld.global.nc.L1::no_allocate.v4.u32"});
    }
  }
}

// What is handed over has no place in memory, so the host gives it none.
TEST(ChainSource, LetsTheFirstEpilogueStoreToSharedMemory) {
  const Gpu gpu = load_gpu("h200");
  for (const Case& c : cases()) {
    const Plan plan = plan_of(c, gpu);
    const Kernel& kernel = chain_in(plan);
    const ChainLayout layout = chain_layout(kernel, gpu).value();
    EXPECT_EQ(chain_not_built(plan.graph, kernel, layout, plan_target(gpu).shared_bytes_per_block),
              "");
    const ChainKernelSource source =
        chain_kernel_source(plan.graph, kernel, layout, title_of(plan, kernel));
    EXPECT_NE(source.source.text.find(".data = h;"), std::string::npos) << source.source.text;
    EXPECT_LE(source.shared_bytes, plan_target(gpu).shared_bytes_per_block);
  }
}

}  // namespace
}  // namespace fuseline::cuda
