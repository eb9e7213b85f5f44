// GEMM kernels, single and in batches, on a real GPU against the executor.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <thread>
#include <variant>
#include <vector>

#include "cuda/emit/kernel_source.h"
#include "tests/cuda/run/gpu_support.h"
#include "tests/model/small_experts.h"

namespace fuseline::cuda {
namespace {

class SlowGpuGemm : public test::GpuKernelTest, public testing::WithParamInterface<SmTarget> {
 protected:
  void check(const ModelConfig& config, const Workload& work) {
    if (!use(GetParam())) return;
    double worst = 0;
    int programs = 0;
    compile_ahead(config, work);
    for_each_program(config, work, [&](test::ExecutedPlan& p, const Program& program) {
      if (!std::holds_alternative<GemmMainloop>(program.mainloop)) return;
      ++programs;
      for (const GemmTile& tile : tiles_) {
        for (const StoredTensorError& e :
             check_gemm(context(p), program, tile, p.tensors, *p.execution.memory)) {
          EXPECT_TRUE(e.finite) << e.tensor;
          // Both round once to bf16 from fp32 sums in different orders: where a sum lies next to a
          // rounding boundary they differ by 2⁻⁸ of it, and few do.
          EXPECT_LT(e.relative_l2, 2e-3) << e.tensor << " " << tile.m << " x " << tile.n << " / "
                                         << tile.cluster() << ", " << tile.tail_parts << " parts";
          worst = std::max(worst, e.relative_l2);
        }
      }
    });
    EXPECT_GT(programs, 5);
    RecordProperty("worst_relative_l2", fmt::format("{:.2e}", worst));
  }

 private:
  // On all cores of the host: one kernel after the other takes a GPU for minutes.
  void compile_ahead(const ModelConfig& config, const Workload& work) {
    std::vector<Source> sources;
    for_each_plan(config, work, [&](const Plan& plan) {
      for (const Kernel& kernel : plan.kernels)
        for (const Program& program : kernel.phases)
          if (std::holds_alternative<GemmMainloop>(program.mainloop))
            for (const GemmTile& tile : tiles_)
              sources.push_back(
                  gemm_kernel_source(plan.graph, program, tile, store_->target(), plan.policy)
                      .source);
    });
    store_->compile_ahead(sources, static_cast<int>(std::thread::hardware_concurrency()));
  }

  // Six are turned and whole: of the first four two have two store buffers for each consumer, the
  // others one. The last ones take what sums down columns, and what loads two operands.
  const std::vector<GemmTile> tiles_ = {{.m = 128, .n = 256, .cluster_m = 2},
                                        {.m = 128, .n = 256, .cluster_m = 2, .tail_parts = 2},
                                        {.m = 128, .n = 128, .tail_parts = 3},
                                        {.m = 64, .n = 128, .cluster_m = 1},
                                        {.m = 64, .n = 128, .cluster_k = 2},
                                        {.m = 64, .n = 64, .cluster_k = 4},
                                        {.m = 80, .n = 128, .cluster_n = 2},
                                        {.m = 96, .n = 256, .cluster_n = 2},
                                        {.m = 144, .n = 256, .cluster_n = 2},
                                        {.m = 272, .n = 128, .cluster_n = 2},
                                        {.m = 128, .n = 64, .tail_parts = 5},
                                        {.m = 96, .n = 256, .cluster_n = 2, .tail_parts = 3},
                                        {.m = 272, .n = 128, .cluster_n = 2, .tail_parts = 2},
                                        {.m = 128, .n = 128, .cluster_n = 2},
                                        {.m = 176, .n = 128, .cluster_n = 2},
                                        {.m = 208, .n = 128, .cluster_n = 2, .tail_parts = 3}};
};

TEST_P(SlowGpuGemm, ForwardEqualsTheExecutor) {
  check(test::small_llama(), fuseline::test::forward(2, 75));
  check(test::small_gpt(), fuseline::test::forward(1, 141));
}

TEST_P(SlowGpuGemm, DecodeEqualsTheExecutor) {
  check(test::small_llama(), fuseline::test::decode(3, 1, 60));
  check(test::small_gpt(), fuseline::test::decode(2, 4, 70));
}

// Groups of rows that fill a part of a tile, and that need two tiles.
TEST_P(SlowGpuGemm, ExpertsEqualTheExecutor) {
  const ModelConfig experts = fuseline::test::small_experts();
  check(experts, fuseline::test::forward(2, 75));
  check(experts, fuseline::test::forward(1, 301));
  check(experts, fuseline::test::decode(3, 1, 60));
}

// 60 rows of five experts take boxes of 16 rows in low tiles: groups of 20 and 18 rows take two,
// the last of which ends in the next group's rows or behind the matrix.
TEST_P(SlowGpuGemm, UnevenExpertsEqualTheExecutor) {
  Workload work = fuseline::test::decode(20, 1, 60);
  work.routing = {.name = "uneven", .shares = {0.20, 0.33, 0.07, 0.10, 0.30}};
  check(fuseline::test::small_experts(), work);
}

TEST_P(SlowGpuGemm, DecodeInAWindowEqualsTheExecutor) {
  ModelConfig config = test::small_llama();
  config.sliding_window = 48;  // operands of the caches' last rows
  check(config, fuseline::test::decode(3, 1, 104));
}

TEST_P(SlowGpuGemm, TrainEqualsTheExecutor) {
  check(test::small_llama(), fuseline::test::train(2, 75));
  check(test::small_gpt(), fuseline::test::train(1, 141));
  check(test::small_gpt(), fuseline::test::train(3, 143));  // tiles that end within others' blocks
}

// Groups along K that end within a step, and matrices that lie along K; an expert without rows.
TEST_P(SlowGpuGemm, TrainingOfExpertsEqualsTheExecutor) {
  ModelConfig experts = fuseline::test::small_experts();
  check(experts, fuseline::test::train(2, 75));
  experts.values["E"] = std::int64_t{40};
  check(experts, fuseline::test::train(1, 7));
}

INSTANTIATE_TEST_SUITE_P(Slow, SlowGpuGemm, testing::Values(SmTarget::sm_90a, SmTarget::sm_80),
                         [](const auto& p) { return name_of(p.param); });

}  // namespace
}  // namespace fuseline::cuda
