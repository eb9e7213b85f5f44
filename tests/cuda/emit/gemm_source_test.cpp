// Every GEMM program of every policy becomes a kernel that compiles without spills, with the
// instructions that its mainloop is made for. Needs a CUDA toolkit, no GPU.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <set>

#include "cuda/emit/kernel_source.h"
#include "model/error.h"
#include "model/model_files.h"
#include "model/policy.h"

namespace fuseline::cuda {
namespace {

using testing::HasSubstr;

Workload workload(Phase phase, std::int64_t batch, std::int64_t tokens, std::int64_t context) {
  Workload work;
  work.phase = phase;
  work.batch = batch;
  work.seq = tokens;
  work.context = context;
  return work;
}

// The sources of a plan's GEMMs, without those that differ in nothing but comments.
std::vector<GemmKernelSource> sources(const Plan& plan) {
  std::vector<GemmKernelSource> found;
  for (const Kernel& kernel : plan.kernels)
    for (const Program& program : kernel.phases)
      if (const auto* gemm = std::get_if<GemmMainloop>(&program.mainloop);
          gemm != nullptr && gemm->batch == 1)
        found.push_back(gemm_kernel_source(plan.graph, program, GemmTile{.m = 128, .n = 256},
                                           SmTarget::sm_90a, "test"));
  return found;
}

std::string without_comments(const std::string& text) { return text.substr(text.find("#include")); }

class SlowGemmSources : public testing::Test {
 protected:
  void SetUp() override {
    try {
      compiler_.emplace();
    } catch (const MissingError& error) {
      GTEST_SKIP() << error.what();
    }
    if (!compiler_->makes(SmTarget::sm_90a)) GTEST_SKIP() << "the toolkit makes no sm_90a code";
  }

  void compile_all(const std::string& model, const Workload& work) {
    for (const PolicyInfo& policy : policies()) {
      if (policy.name == "custom" || (work.phase == Phase::train && !policy.trains)) continue;
      const Plan plan = make_plan(policy.name, load_model(model), work);
      for (const GemmKernelSource& kernel : sources(plan)) {
        if (!seen_.insert(without_comments(kernel.source.text)).second) continue;
        SCOPED_TRACE(policy.name + " " + model + " " + kernel.function);
        const Compiled compiled = compiler_->compile(kernel.source, SmTarget::sm_90a);
        EXPECT_EQ(compiled.use.spill_bytes, 0)
            << kernel.config.tile_m << " x " << kernel.config.tile_n << '\n'
            << kernel.source.text;
        EXPECT_EQ(compiled.log.find("C7508"), std::string::npos) << compiled.log;
        EXPECT_THAT(compiled.ptx, HasSubstr("wgmma.mma_async"));
        EXPECT_THAT(compiled.ptx, HasSubstr("cp.async.bulk.tensor"));
        EXPECT_THAT(compiled.ptx, HasSubstr("fence.proxy.async"));
      }
    }
  }

  std::optional<Compiler> compiler_;
  std::set<std::string> seen_;
};

TEST_F(SlowGemmSources, ForwardCompiles) {
  compile_all("llama2-7b", workload(Phase::forward, 1, 2048, 2048));
  compile_all("gpt2-xl", workload(Phase::forward, 1, 1024, 1024));
  EXPECT_GT(seen_.size(), 5U);
}

TEST_F(SlowGemmSources, DecodeCompiles) {
  compile_all("llama2-70b", workload(Phase::decode, 16, 1, 2048));
  EXPECT_GT(seen_.size(), 5U);
}

TEST_F(SlowGemmSources, TrainCompiles) {
  compile_all("llama2-7b", workload(Phase::train, 1, 2048, 2048));
  compile_all("gpt2-xl", workload(Phase::train, 1, 1024, 1024));
  EXPECT_GT(seen_.size(), 8U);
}

}  // namespace
}  // namespace fuseline::cuda
