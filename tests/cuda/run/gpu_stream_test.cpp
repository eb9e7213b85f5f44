// Streams and rows on a real GPU, against the executor. Skipped, with the reason, where there is
// none.
#include <gtest/gtest.h>

#include <optional>

#include "base/error.h"
#include "cuda/run/kernel_check.h"
#include "cuda/run/stream_launch.h"
#include "model/backward.h"
#include "model/blocks/block.h"
#include "model/policy.h"
#include "sim/executor/inputs.h"
#include "sim/gpu/gpu.h"
#include "tests/cuda/run/gpu_support.h"
#include "tests/model/small_experts.h"
#include "tests/sim/open_blocks.h"
#include "tests/sim/shipped_sizes.h"

namespace fuseline::cuda {
namespace {

bool is_stream_kernel(const Program& program) {
  return std::holds_alternative<StreamMainloop>(program.mainloop) ||
         std::holds_alternative<RowMainloop>(program.mainloop);
}

class SlowGpuStream : public testing::Test {
 protected:
  void SetUp() override {
    try {
      device_.emplace();
      store_.emplace(*device_, CubinCache::standard());
    } catch (const MissingError& error) {
      GTEST_SKIP() << error.what();
    }
  }

  void check(const std::string& policy, const Graph& block) {
    SCOPED_TRACE(policy);
    const Plan plan = make_plan(policy, block);
    const executor::Workers workers;
    const auto inputs =
        executor::prepare_inputs(plan, executor::random_storage(block, 7, workers), 7, workers);
    const auto done = executor::execute(plan, inputs, load_gpu("h200"), {.workers = workers});
    GpuTensors tensors(*device_, plan);
    const LaunchContext context{*device_, *store_, plan, tensors};
    for (const Kernel& kernel : plan.kernels) {
      for (const Program& program : kernel.phases) {
        if (!is_stream_kernel(program)) continue;
        SCOPED_TRACE(program.name);
        const StreamKernelSource source = stream_kernel_source(plan.graph, program, policy);
        const Launches launches = prepare_stream(context, source, program);
        for (const StoredTensorError& e :
             check_launches(context, program, launches, tensors, *done.memory)) {
          ++checked_;
          EXPECT_TRUE(e.finite) << e.tensor << '\n' << source.source.text;
          // Both compute in fp32 in different orders and round once, to 16 bits at most: where a
          // value lies next to a rounding boundary they differ by 2⁻⁸ of it, and few do.
          EXPECT_LT(e.relative_l2, 2e-3) << e.tensor << '\n' << source.source.text;
        }
      }
    }
  }

  void check_all(const ModelConfig& config, const Workload& work) {
    SCOPED_TRACE(config.name);
    for (const PolicyInfo& policy : policies()) {
      if (policy.name == "custom" || policy.name == "whole-block") continue;
      if (work.phase == Phase::train && !policy.trains) continue;
      check(policy.name, build_block(config, work));
      check(policy.name, build_entry(config, work));
      check(policy.name, build_exit(config, work));
    }
  }

  std::optional<Device> device_;
  std::optional<KernelStore> store_;
  int checked_ = 0;
};

// Nothing is a multiple of 8 columns; a vocabulary that no thread block holds a row of.
ModelConfig odd_llama() {
  ModelConfig c = fuseline::test::tiny_llama();
  c.D = 150;
  c.F = 131;
  c.V = 16411;
  return c;
}

ModelConfig odd_gpt() {
  ModelConfig c = fuseline::test::tiny_gpt();
  c.D = 143;
  c.F = 301;
  c.H = c.Hkv = 11;
  c.d = 13;
  c.max_positions = 48;
  return c;
}

TEST_F(SlowGpuStream, ForwardEqualsTheExecutor) {
  check_all(test::small_llama(), fuseline::test::forward(2, 75));
  check_all(test::small_gpt(), fuseline::test::forward(1, 141));
  check_all(odd_llama(), fuseline::test::forward(3, 17));
  check_all(odd_gpt(), fuseline::test::forward(1, 41));
  EXPECT_GT(checked_, 200);
}

TEST_F(SlowGpuStream, DecodeEqualsTheExecutor) {
  check_all(test::small_llama(), fuseline::test::decode(3, 1, 60));
  check_all(test::small_gpt(), fuseline::test::decode(2, 3, 60));
  check_all(odd_llama(), fuseline::test::decode(3, 2, 29));
  EXPECT_GT(checked_, 100);
}

TEST_F(SlowGpuStream, TrainEqualsTheExecutor) {
  check_all(test::small_llama(), fuseline::test::train(2, 75));
  check_all(test::small_gpt(), fuseline::test::train(1, 141));
  check_all(odd_llama(), fuseline::test::train(3, 17));
  check_all(odd_gpt(), fuseline::test::train(1, 41));
  EXPECT_GT(checked_, 500);
}

// Routing, sorted places and rows in their order.
TEST_F(SlowGpuStream, ExpertsEqualTheExecutor) {
  ModelConfig experts = fuseline::test::small_experts();
  check_all(experts, fuseline::test::forward(2, 75));
  check_all(experts, fuseline::test::decode(3, 1, 60));
  experts.values["E"] = std::int64_t{64};
  experts.values["k"] = std::int64_t{6};
  check_all(experts, fuseline::test::forward(1, 301));
  experts.values["all_scores"] = true;
  check_all(experts, fuseline::test::forward(1, 41));
  // More experts of a token than a row has lanes, and than a warp has.
  for (const std::int64_t chosen : {11, 40}) {
    experts.values["k"] = chosen;
    check_all(experts, fuseline::test::decode(3, 1, 60));
  }
  check_all(fuseline::test::small_latent_experts(), fuseline::test::forward(2, 75));
  EXPECT_GT(checked_, 100);
}

// The gradients of routing, of modulation and of convolutions along rows: sums over sequences and
// taps, choices, places, sums over heads on the way down.
TEST_F(SlowGpuStream, GradientsOfOpenBlocksEqualTheExecutor) {
  ModelConfig experts = fuseline::test::small_experts();
  check_all(experts, fuseline::test::train(2, 75));
  experts.values["E"] = std::int64_t{64};
  experts.values["k"] = std::int64_t{6};
  experts.values["all_scores"] = true;
  check_all(experts, fuseline::test::train(1, 141));
  for (const char* policy : {"unfused", "per-operator", "coda"}) {
    fuseline::test::BlockSizes sizes{.batch = 3,
                                     .tokens = 77,
                                     .model = 200,
                                     .inner = 136,
                                     .heads = 6,
                                     .kv_heads = 2,
                                     .width = 32};
    check(policy, differentiate(fuseline::test::modulated_block(sizes, true)));
    check(policy, differentiate(fuseline::test::qwen3_like(sizes)));
    sizes.model = 150;  // no whole vectors
    check(policy, differentiate(fuseline::test::modulated_block(sizes, false)));
  }
  for (const char* block : {"mamba", "mamba2"})
    check_all(fuseline::test::sized(block, true), fuseline::test::train(3, 141));
  EXPECT_GT(checked_, 300);
}

// Columns beyond what a thread has at once, rows beyond a block of 128, a sliding window.
TEST_F(SlowGpuStream, WideRowsEqualTheExecutor) {
  ModelConfig wide = test::small_llama();
  wide.D = 2600;
  wide.F = 1000;
  wide.V = 40;
  check_all(wide, fuseline::test::train(1, 290));
  ModelConfig windowed = test::small_llama();
  windowed.sliding_window = 33;
  check_all(windowed, fuseline::test::train(2, 75));
}

}  // namespace
}  // namespace fuseline::cuda
