// The whole of a measurement on a real GPU. Skipped, with the reason, where there is none.
#include <gtest/gtest.h>

#include <filesystem>

#include "cuda/run/known_gpu.h"
#include "cuda/run/measure.h"
#include "model/error.h"
#include "sim/measurement_write.h"
#include "tests/model/plan_support.h"

namespace fuseline::cuda {
namespace {

class SlowGpuMeasure : public testing::TestWithParam<Workload> {
 protected:
  void SetUp() override {
    try {
      gpu_ = known_gpu(device_here());
    } catch (const MissingError& error) {
      GTEST_SKIP() << error.what();
    }
  }
  Gpu gpu_;
};

TEST_P(SlowGpuMeasure, ChecksTimesAndRepeats) {
  ModelConfig config = test::tiny_llama();
  config.D = 256;
  config.F = 512;
  config.H = 4;
  config.Hkv = 2;
  config.d = 64;
  MeasureOptions options;
  options.workers.threads = executor::available_threads();
  options.replays = 5;
  options.tune = true;
  const GpuMeasurement m =
      measure(config, GetParam(), {"unfused", "per-operator", "coda"}, gpu_, options);
  ASSERT_EQ(m.policies.size(), 3U);
  for (const MeasuredPolicy& p : m.policies) {
    EXPECT_TRUE(p.passed()) << p.policy << ' ' << p.not_finite;
    EXPECT_FALSE(p.tensors.empty()) << p.policy;
    EXPECT_GT(p.block.time.least.value(), 0) << p.policy;
    EXPECT_LE(p.block.time.least, p.block.time.median) << p.policy;
    EXPECT_LT(p.block.time.median.value(), 1e-2) << p.policy;
    for (const TunedGemm& t : p.tuned) EXPECT_LE(t.best_time, t.chosen_time) << t.kernel;
    if (!p.trace) continue;
    for (const MeasuredKernel& k : p.trace->kernels) EXPECT_GT(k.duration().value(), 0) << k.site;
  }
  EXPECT_FALSE(m.policies.back().tuned.empty());
  Measurements file = as_measurements(m, gpu_);
  const auto folder = std::filesystem::temp_directory_path() / "fuseline-gpu-measure-test";
  write_measurements(folder, file, ExistingFolder::replace);
  EXPECT_EQ(load_measurements(folder.string()).blocks.size(), 3U);
  std::filesystem::remove_all(folder);
}

INSTANTIATE_TEST_SUITE_P(Phases, SlowGpuMeasure,
                         testing::Values(test::forward(1, 200), test::decode(3, 1, 100),
                                         test::train(1, 130)));

}  // namespace
}  // namespace fuseline::cuda
