// Attention kernels on a real GPU against the executor: forward, decode, gradients.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tests/cuda/run/gpu_support.h"
#include "tests/model/small_experts.h"

namespace fuseline::cuda {
namespace {

// Grouped queries: 3 query heads to a key head.
ModelConfig llama(std::int64_t d) {
  ModelConfig c = fuseline::test::tiny_llama();
  c.D = 192;
  c.F = 272;
  c.H = 6;
  c.Hkv = 2;
  c.d = d;
  return c;
}

ModelConfig gpt(std::int64_t d) {
  ModelConfig c = fuseline::test::tiny_gpt();
  c.D = 200;
  c.F = 328;
  c.H = c.Hkv = 3;
  c.d = d;
  return c;
}

ModelConfig windowed(ModelConfig config, std::int64_t window) {
  config.sliding_window = window;
  return config;
}

// Largest relative error of a stored tensor. The executor keeps probabilities and their slopes in
// fp32; the kernels round them to bf16 ahead of the second product, by 2⁻⁹ / √3 = 1.1e-3 (rms) of
// each. Terms of random sign: a sum is off by as much of itself, gradients, with two such factors,
// by √2 as much. Then a bf16 result is rounded: it lands on the other side of a boundary where the
// sum lay within 1.6e-3 of itself of it, one time in four at steps of 2⁻⁸ to 2⁻⁷ (5.6e-3), so by
// 2.8e-3 (rms). RoPE ahead of attention rounds q and k by 1.1e-3 each where the executor does not,
// which moves scores, and so probabilities, by 1.6e-3 times the scores' size (about 1).
double tolerance(const Tensor& tensor, const Program& program) {
  // Sums of up to 300 exponentials in fp32, each off by 2⁻²².
  if (tensor.name == "softmax_lse") return 1e-5;
  const double roundings = 1.6e-3 + (program.prologue.empty() ? 0 : 1.6e-3);
  const double result = tensor.dtype == Dtype::fp32 ? 0 : 2.8e-3;
  return 1.5 * (roundings + result);
}

class SlowGpuAttention : public test::GpuKernelTest, public testing::WithParamInterface<SmTarget> {
 protected:
  void check(const ModelConfig& config, const Workload& work) {
    if (!use(GetParam())) return;
    int programs = 0;
    for_each_program(config, work, [&](test::ExecutedPlan& p, const Program& program) {
      if (!std::holds_alternative<AttentionMainloop>(program.mainloop)) return;
      ++programs;
      for (const StoredTensorError& e :
           check_attention(context(p), program, p.tensors, *p.execution.memory)) {
        const Tensor& tensor = p.plan.graph.tensor(p.plan.graph.find_tensor(e.tensor).value());
        EXPECT_TRUE(e.finite) << e.tensor;
        EXPECT_LT(e.relative_l2, tolerance(tensor, program))
            << e.tensor << ", heads of " << config.d;
        double& worst = worst_[e.tensor];
        worst = std::max(worst, e.relative_l2);
      }
    });
    EXPECT_GT(programs, 0);
  }
  void TearDown() override {
    for (const auto& [tensor, worst] : worst_) RecordProperty(tensor, fmt::format("{:.2e}", worst));
  }
  std::map<std::string, double> worst_;
};

TEST_P(SlowGpuAttention, ForwardEqualsTheExecutor) {
  for (const std::int64_t d : {32, 48, 64, 80, 96, 112, 128})
    check(llama(d), fuseline::test::forward(2, 203));
  for (const std::int64_t d : {64, 80, 144, 208, 256})
    check(gpt(d), fuseline::test::forward(1, 141));
  for (const std::int64_t d : {160, 256}) check(llama(d), fuseline::test::forward(2, 203));
}

TEST_P(SlowGpuAttention, ForwardInAWindowEqualsTheExecutor) {
  for (const std::int64_t d : {64, 96, 128, 256})
    check(windowed(llama(d), 70), fuseline::test::forward(2, 203));
}

TEST_P(SlowGpuAttention, DecodeEqualsTheExecutor) {
  for (const std::int64_t d : {32, 64, 128}) {
    check(llama(d), fuseline::test::decode(3, 1, 607));
    check(llama(d), fuseline::test::decode(2, 5, 333));   // causal among the new tokens
    check(llama(d), fuseline::test::decode(2, 37, 333));  // too many for the decode kernel
  }
  check(gpt(64), fuseline::test::decode(1, 1, 2100));  // several splits
}

TEST_P(SlowGpuAttention, DecodeInAWindowEqualsTheExecutor) {
  for (const std::int64_t T : {1, 5, 37})
    check(windowed(llama(64), 100), fuseline::test::decode(2, T, 333));
}

// Heads of `plain` and `turned` columns together, values of `value`; in decode one key of the
// latent row and the turned columns serves all heads.
ModelConfig latent(std::int64_t heads, std::int64_t plain, std::int64_t turned, std::int64_t value,
                   std::int64_t row) {
  ModelConfig c = fuseline::test::small_latent_experts();
  c.H = heads;
  c.values["dn"] = plain;
  c.values["dr"] = turned;
  c.values["dv"] = value;
  c.values["rkv"] = row;
  return c;
}

TEST_P(SlowGpuAttention, ValuesNarrowerThanKeysEqualTheExecutor) {
  check(latent(3, 128, 64, 128, 64), fuseline::test::forward(2, 203));
  check(latent(3, 48, 16, 32, 64), fuseline::test::forward(1, 141));
  for (const std::int64_t T : {1, 5, 37})
    check(latent(3, 48, 16, 32, 64), fuseline::test::decode(2, T, 333));
}

// Neither panel of the keys' or the values' second 64 columns is full.
TEST_P(SlowGpuAttention, ValuesAndKeysOfOddWidthsEqualTheExecutor) {
  check(latent(3, 64, 48, 80, 64), fuseline::test::forward(2, 203));
}

// Wider than what other kernels take: few query heads and many, one split and several.
TEST_P(SlowGpuAttention, ValuesAmongTheColumnsOfWideKeysEqualTheExecutor) {
  for (const std::int64_t heads : {3, 37}) {
    check(latent(heads, 24, 64, 24, 512), fuseline::test::decode(2, 1, 607));
    check(latent(heads, 24, 64, 24, 512), fuseline::test::decode(1, 5, 97));
    check(latent(heads, 24, 32, 24, 256), fuseline::test::decode(1, 37, 333));
  }
}

TEST_P(SlowGpuAttention, TrainEqualsTheExecutor) {
  for (const std::int64_t d : {32, 64, 80, 96, 112, 128})
    check(llama(d), fuseline::test::train(2, 203));
  for (const std::int64_t d : {64, 112}) check(gpt(d), fuseline::test::train(1, 141));
}

TEST_P(SlowGpuAttention, TrainInAWindowEqualsTheExecutor) {
  for (const std::int64_t d : {64, 96, 128})
    check(windowed(llama(d), 70), fuseline::test::train(2, 203));
}

INSTANTIATE_TEST_SUITE_P(Slow, SlowGpuAttention, testing::Values(SmTarget::sm_90a, SmTarget::sm_80),
                         [](const auto& p) { return name_of(p.param); });

}  // namespace
}  // namespace fuseline::cuda
