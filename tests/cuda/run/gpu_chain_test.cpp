// Decode blocks with a chain of two products on a real GPU: against fp64, and the same bits in
// every run. Skipped, with the reason, where there is none.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "cuda/run/measure.h"
#include "model/blocks/block.h"
#include "model/policy.h"
#include "sim/gpu/plan_target.h"
#include "tests/cuda/needs.h"
#include "tests/model/tiny_models.h"

namespace fuseline::cuda {
namespace {

struct ChainCaseOnGpu {
  std::int64_t D, F, batch;
};

class SlowGpuChain : public testing::TestWithParam<ChainCaseOnGpu> {};

TEST_P(SlowGpuChain, AgreesWithTheReferenceAndRepeats) {
  Gpu gpu;
  if (const std::string why = test::why_no_gpu(gpu); !why.empty()) GTEST_SKIP() << why;
  const ChainCaseOnGpu c = GetParam();
  ModelConfig config = test::tiny_llama();
  config.D = c.D;
  config.F = c.F;
  config.H = 4;
  config.Hkv = 2;
  config.d = 64;
  Workload work;
  work.phase = Phase::decode;
  work.batch = c.batch;
  work.seq = 1;
  work.context = 130;
  Plan plan = make_custom_plan(build_block(config, work),
                               {"split_norm", "finish_in_epilogues", "rotate_statistics",
                                "interleave_gate_up", "chain_products"},
                               {{"gate_up", "gate_up_scale"},
                                {"finish_norm2", "gate_up_scale"},
                                {"gate_up_scale", "swiglu"},
                                {"swiglu", "down"},
                                {"down", "residual2"},
                                {"residual2", "stats_next"}},
                               plan_target(gpu));
  MeasureOptions options;
  options.workers.threads = executor::available_threads();
  options.replays = 20;
  options.counters = false;
  options.check = CheckSize::full;
  options.plan = std::make_shared<const Plan>(std::move(plan));
  GpuMeasurement m;
  try {
    m = measure(config, work, {}, gpu, options);
  } catch (const MissingError& error) {
    GTEST_SKIP() << error.what();
  }
  ASSERT_EQ(m.policies.size(), 1U);
  const MeasuredPolicy& p = m.policies.front();
  EXPECT_TRUE(p.passed()) << p.not_finite;
  for (const executor::ComparedTensor& t : p.tensors) EXPECT_EQ(t.problem, "") << t.name;
}

// One piece of 8 columns, fewer pieces than multiprocessors, an odd number of them, as many rows as
// there can be, and a shipped size.
INSTANTIATE_TEST_SUITE_P(Sizes, SlowGpuChain,
                         testing::Values(ChainCaseOnGpu{256, 8, 1}, ChainCaseOnGpu{264, 40, 8},
                                         ChainCaseOnGpu{1032, 1064, 3},
                                         ChainCaseOnGpu{2048, 5632, 2}));

}  // namespace
}  // namespace fuseline::cuda
