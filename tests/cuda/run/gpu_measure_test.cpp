// The whole of a measurement on a real GPU. Skipped, with the reason, where there is none.
#include <gtest/gtest.h>

#include <filesystem>

#include "base/error.h"
#include "cuda/run/known_gpu.h"
#include "cuda/run/measure.h"
#include "model/config/model_files.h"
#include "sim/measured/measurement_write.h"
#include "tests/cuda/needs.h"
#include "tests/model/plan_support.h"

namespace fuseline::cuda {
namespace {

// Heads as wide as attention's kernels want them.
ModelConfig small_llama() {
  ModelConfig config = test::tiny_llama();
  config.D = 256;
  config.F = 512;
  config.H = 4;
  config.Hkv = 2;
  config.d = 64;
  return config;
}

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
  const ModelConfig config = small_llama();
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

// Flash attention without anything in front of or behind it is a call of the vendor's library.
TEST_P(SlowGpuMeasure, RunsTheVendorsAttentionWhereItCan) {
  const Workload workload = GetParam();
  const ModelConfig config = small_llama();
  MeasureOptions options;
  options.workers.threads = executor::available_threads();
  options.replays = 5;
  options.counters = false;
  options.library_attention = true;
  const GpuMeasurement m =
      measure(config, workload, {"unfused", "per-operator", "coda"}, gpu_, options);
  if (!m.library_attention) GTEST_SKIP() << "no cuDNN here";
  EXPECT_NE(m.libraries.find("cuDNN 9"), std::string::npos) << m.libraries;
  ASSERT_EQ(m.policies.size(), 3U);
  for (const MeasuredPolicy& p : m.policies)
    EXPECT_TRUE(p.passed()) << p.policy << ' ' << p.not_finite;
  EXPECT_EQ(m.policies[0].library_attentions, 0);  // scores and probabilities in memory
  if (workload.phase == Phase::forward) {
    EXPECT_EQ(m.policies[1].library_attentions, 1);
  }
}

// The rival of this test is no framework: its times are made up, its turns are not.
TEST_P(SlowGpuMeasure, TimesRivalsInTurns) {
  const std::string script = std::string(FUSELINE_SOURCE_DIR) + "/tests/cuda/run/fake_rival.py";
  if (!std::filesystem::exists(script)) GTEST_SKIP() << "the sources are not here";
  MeasureOptions options;
  options.workers.threads = executor::available_threads();
  options.replays = 3;
  options.rounds = 3;
  options.counters = false;
  options.check = CheckSize::none;
  options.rivals = {"eager", "composed"};
  options.rival_command = "python3 '" + script + "'";
  const GpuMeasurement m = measure(small_llama(), GetParam(), {"coda"}, gpu_, options);
  ASSERT_EQ(m.policies.size(), 1U);
  ASSERT_EQ(m.rivals.size(), 1U);  // the other one cannot be got ready
  EXPECT_EQ(m.rivals.front().block.execution, "eager");
  EXPECT_EQ(m.rival_framework, "Fake 1.0");
  EXPECT_FALSE(m.notes.empty());
}

// Blocks whose kernels no LLaMA has: joined streams, norms of heads and behind each branch, capped
// scores, experts, convolutions and scans.
void expect_passes(const ModelConfig& model, const Workload& workload,
                   const std::vector<std::string>& policies = {"eager", "torch-compile", "coda"},
                   bool overlap = false) {
  Gpu gpu;
  if (const std::string why = test::why_no_gpu(gpu); !why.empty()) GTEST_SKIP() << why;
  MeasureOptions options;
  options.workers.threads = executor::available_threads();
  options.replays = overlap ? 20 : 3;
  options.counters = false;
  options.overlap = overlap;
  const GpuMeasurement m = measure(model, workload, policies, gpu, options);
  ASSERT_EQ(m.policies.size(), policies.size());
  for (const MeasuredPolicy& p : m.policies)
    EXPECT_TRUE(p.passed()) << p.policy << ' ' << p.not_finite;
}

// The outputs of replays whose launches overlap have the bits of kernels that ran one by one.
class SlowGpuOverlap : public testing::TestWithParam<const char*> {};

TEST_P(SlowGpuOverlap, RepeatsWhatOneByOneGave) {
  expect_passes(load_model(GetParam()), test::decode(3, 1, 200), {"per-operator", "coda"}, true);
}

INSTANTIATE_TEST_SUITE_P(Models, SlowGpuOverlap,
                         testing::Values("llama2-7b", "gpt2-xl", "qwen3-30b-a3b", "gemma2-9b",
                                         "mamba2-2.7b", "deepseek-v2-lite"));

class SlowGpuOpenBlocks : public testing::TestWithParam<const char*> {};

TEST_P(SlowGpuOpenBlocks, PassesTheCheck) {
  expect_passes(load_model(GetParam()), test::forward(2, 96));
}

INSTANTIATE_TEST_SUITE_P(Models, SlowGpuOpenBlocks,
                         testing::Values("sd3-medium", "sd3-medium-qknorm", "qwen3-8b", "glm4",
                                         "gemma2-9b", "gemma3", "mamba2-2.7b", "mamba-2.8b",
                                         "mixtral-8x7b", "qwen3-30b-a3b"));

// Where each expert has few tokens, and where every launch of a textbook is made.
struct ExpertCase {
  const char* model;
  Workload workload;
  std::vector<std::string> policies;
};
void PrintTo(const ExpertCase& c, std::ostream* out) {
  *out << c.model << ' ' << testing::PrintToString(c.workload);
}
class SlowGpuExperts : public testing::TestWithParam<ExpertCase> {};

TEST_P(SlowGpuExperts, PassTheCheck) {
  const ExpertCase& c = GetParam();
  expect_passes(load_model(c.model), c.workload, c.policies);
}

INSTANTIATE_TEST_SUITE_P(
    Models, SlowGpuExperts,
    testing::Values(ExpertCase{"qwen3-30b-a3b",
                               test::decode(3, 1, 200),
                               {"unfused", "eager", "torch-compile", "coda"}},
                    ExpertCase{"mixtral-8x7b", test::decode(3, 1, 200), {"unfused", "coda"}},
                    ExpertCase{"deepseek-v2-lite", test::forward(2, 96), {"unfused"}},
                    ExpertCase{"deepseek-v2-lite", test::decode(3, 1, 200), {"unfused"}}));

// Tokens that end within a chunk, and states that every replay overwrites.
class SlowGpuStateSpace : public testing::TestWithParam<Workload> {};

TEST_P(SlowGpuStateSpace, PassesTheCheck) {
  ModelConfig hybrid = load_model("jamba");
  std::erase_if(hybrid.blocks, [](const BlockUse& use) { return use.name != "mamba-mlp"; });
  for (const ModelConfig& model : {load_model("mamba2-2.7b"), load_model("mamba-2.8b"), hybrid}) {
    SCOPED_TRACE(model.name);
    expect_passes(model, GetParam());
  }
}

INSTANTIATE_TEST_SUITE_P(Workloads, SlowGpuStateSpace,
                         testing::Values(test::forward(1, 333), test::decode(3, 1, 100),
                                         test::decode(2, 5, 100)));

// What trains and no LLaMA has: modulation, experts, convolutions and scans.
class SlowGpuTraining : public testing::TestWithParam<const char*> {};

TEST_P(SlowGpuTraining, PassesTheCheck) {
  expect_passes(load_model(GetParam()), test::train(1, 200), {"unfused", "per-operator", "coda"});
}

INSTANTIATE_TEST_SUITE_P(Models, SlowGpuTraining,
                         testing::Values("sd3-medium", "qwen3-30b-a3b", "mamba2-2.7b",
                                         "mamba-2.8b"));

INSTANTIATE_TEST_SUITE_P(Phases, SlowGpuMeasure,
                         testing::Values(test::forward(1, 200), test::decode(3, 1, 100),
                                         test::train(1, 130)));

}  // namespace
}  // namespace fuseline::cuda
