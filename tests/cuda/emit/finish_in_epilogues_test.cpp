// Kernels whose tiles sum a norm's partials themselves become machine code, for both mainloops.
#include <gtest/gtest.h>

#include "cuda/emit/kernel_source.h"
#include "cuda/emit/plan_source.h"
#include "model/blocks/block.h"
#include "model/policy.h"
#include "model/primitives/primitives.h"
#include "tests/cuda/emit/compile_support.h"

namespace fuseline::cuda {
namespace {

class SlowFinishInEpilogues : public test::CompileTest {};

TEST_F(SlowFinishInEpilogues, Compiles) {
  const std::vector<std::pair<std::string, std::vector<OnChipEdge>>> cases = {
      {"llama2-7b", {{"qkv", "qkv_scale"}, {"finish_norm1", "qkv_scale"}}},
      {"gpt2-xl", {{"qkv", "qkv_norm"}, {"finish_norm1", "qkv_norm"}}}};
  for (const auto& [model, on_chip] : cases) {
    for (const Phase phase : {Phase::forward, Phase::decode}) {
      const Graph block = build_block(load_model(model), test::workload(phase));
      const Plan plan = make_custom_plan(
          block, {"split_norm", "finish_in_epilogues", "rotate_statistics"}, on_chip);
      const Kernel* kernel = nullptr;
      for (const Kernel& k : plan.kernels)
        for (const Primitive& p : k.phases.front().body)
          if (p.is<LoadRowSums>()) kernel = &k;
      ASSERT_NE(kernel, nullptr) << model;
      for (const char* name : {"h200", "a100-sxm-80gb"}) {
        const Gpu gpu = load_gpu(name);
        const SmTarget target = target_of(gpu);
        if (!makes(target)) continue;
        for (const Source& source : kernel_sources(plan, *kernel, gpu, target)) {
          EXPECT_NE(source.text.find("load_row_sums<"), std::string::npos) << model;
          expect_compiles(source, source.name, target, {});
        }
      }
    }
  }
}

}  // namespace
}  // namespace fuseline::cuda
