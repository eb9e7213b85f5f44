// A decode block in one launch on a real GPU: against fp64, and the same bits in every run.
// Skipped, with the reason, where there is none.
#include <gtest/gtest.h>

#include <algorithm>

#include "base/error.h"
#include "cuda/run/measure.h"
#include "tests/cuda/needs.h"
#include "tests/model/tiny_models.h"

namespace fuseline::cuda {
namespace {

struct BlockCaseOnGpu {
  std::int64_t D, F, H, Hkv, d, batch, context;
};

class SlowGpuBlock : public testing::TestWithParam<BlockCaseOnGpu> {};

TEST_P(SlowGpuBlock, AgreesWithTheReferenceAndRepeats) {
  Gpu gpu;
  if (const std::string why = test::why_no_gpu(gpu); !why.empty()) GTEST_SKIP() << why;
  const BlockCaseOnGpu c = GetParam();
  ModelConfig config = test::tiny_llama();
  config.D = c.D;
  config.F = c.F;
  config.H = c.H;
  config.Hkv = c.Hkv;
  config.d = c.d;
  Workload work;
  work.phase = Phase::decode;
  work.batch = c.batch;
  work.seq = 1;
  work.context = c.context;
  MeasureOptions options;
  options.workers.threads = executor::available_threads();
  options.replays = 20;
  options.counters = false;
  options.check = CheckSize::full;
  GpuMeasurement m;
  try {
    m = measure(config, work, {"whole-block"}, gpu, options);
  } catch (const MissingError& error) {
    GTEST_SKIP() << error.what();
  }
  ASSERT_EQ(m.policies.size(), 1U);
  const MeasuredPolicy& p = m.policies.front();
  EXPECT_TRUE(p.passed()) << p.not_finite;
  for (const executor::ComparedTensor& t : p.tensors) EXPECT_EQ(t.problem, "") << t.name;
  ASSERT_FALSE(p.instructions.empty());
  for (const InstructionTime& i : p.instructions) EXPECT_LE(i.begin, i.end) << i.text;
}

INSTANTIATE_TEST_SUITE_P(Sizes, SlowGpuBlock,
                         testing::Values(BlockCaseOnGpu{256, 704, 4, 2, 64, 1, 1},
                                         BlockCaseOnGpu{256, 704, 4, 2, 64, 3, 2},
                                         BlockCaseOnGpu{1056, 2080, 8, 1, 64, 8, 131},
                                         BlockCaseOnGpu{4128, 4640, 6, 2, 128, 5, 777},
                                         BlockCaseOnGpu{2048, 5632, 32, 4, 64, 2, 2048},
                                         BlockCaseOnGpu{5120, 1024, 40, 40, 128, 1, 3000}));

}  // namespace
}  // namespace fuseline::cuda
