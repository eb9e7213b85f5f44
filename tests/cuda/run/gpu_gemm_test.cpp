// The kernels on a real GPU, against the executor. Skipped, with the reason, where there is none.
#include <gtest/gtest.h>

#include <filesystem>
#include <optional>

#include "cuda/run/kernel_check.h"
#include "model/blocks/block.h"
#include "model/error.h"
#include "model/policy.h"
#include "sim/executor/inputs.h"
#include "sim/gpu.h"
#include "tests/model/plan_support.h"

namespace fuseline::cuda {
namespace {

class SlowGpuGemm : public testing::Test {
 protected:
  void SetUp() override {
    try {
      device_.emplace();
      store_.emplace(*device_, CubinCache::standard());
    } catch (const MissingError& error) {
      GTEST_SKIP() << error.what();
    }
  }

  void check(const std::string& policy, const ModelConfig& config, const Workload& work) {
    SCOPED_TRACE(policy + " " + config.name);
    const Graph block = build_block(config, work);
    const Plan plan = make_plan(policy, block);
    const executor::Workers workers;
    const auto inputs =
        executor::prepare_inputs(plan, executor::random_storage(block, 7, workers), 7, workers);
    const auto done = executor::execute(plan, inputs, load_gpu("h200"), {.workers = workers});
    GpuTensors tensors(*device_, plan);
    for (const Kernel& kernel : plan.kernels) {
      for (const Program& program : kernel.phases) {
        const auto* gemm = std::get_if<GemmMainloop>(&program.mainloop);
        if (gemm == nullptr || gemm->batch > 1) continue;
        for (const GemmTile& tile : {GemmTile{.m = 128, .n = 256, .cluster_m = 2},
                                     GemmTile{.m = 64, .n = 128, .cluster_m = 1}}) {
          SCOPED_TRACE(program.name);
          for (const StoredTensorError& e : check_gemm(*device_, *store_, plan, program, tile,
                                                       tensors, *done.memory, work.batch)) {
            EXPECT_TRUE(e.finite) << e.tensor;
            // Both round once to bf16 from fp32 sums in different orders: where a sum lies next to
            // a rounding boundary they differ by 2⁻⁸ of it, and few do.
            EXPECT_LT(e.relative_l2, 2e-3) << e.tensor;
            std::printf("%-14s %-22s %4lld x %3lld %-20s %.2e\n", policy.c_str(),
                        program.name.c_str(), static_cast<long long>(tile.m),
                        static_cast<long long>(tile.n), e.tensor.c_str(), e.relative_l2);
          }
        }
      }
    }
  }

  std::optional<Device> device_;
  std::optional<KernelStore> store_;
};

ModelConfig small_llama() {
  ModelConfig c = test::tiny_llama();
  c.D = 192;
  c.F = 272;
  c.H = 6;
  c.Hkv = 2;
  c.d = 32;
  return c;
}

ModelConfig small_gpt() {
  ModelConfig c = test::tiny_gpt();
  c.D = 200;
  c.F = 328;
  c.H = c.Hkv = 5;
  c.d = 40;
  return c;
}

TEST_F(SlowGpuGemm, ForwardEqualsTheExecutor) {
  for (const char* policy : {"per-operator", "coda"}) {
    check(policy, small_llama(), test::forward(2, 75));
    check(policy, small_gpt(), test::forward(1, 141));
  }
}

TEST_F(SlowGpuGemm, DecodeEqualsTheExecutor) {
  check("coda", small_llama(), test::decode(3, 1, 60));
}

TEST_F(SlowGpuGemm, TrainEqualsTheExecutor) {
  for (const char* policy : {"per-operator", "coda"}) {
    check(policy, small_llama(), test::train(2, 75));
    check(policy, small_gpt(), test::train(1, 141));
  }
}

}  // namespace
}  // namespace fuseline::cuda
