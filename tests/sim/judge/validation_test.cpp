#include "sim/judge/validation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

namespace fuseline {
namespace {

using ::testing::ElementsAre;

Workload forward_of_one(std::int64_t seq) {
  return {.phase = Phase::forward, .batch = 1, .seq = seq, .context = 0};
}

MeasuredBlock block(const std::string& execution, std::int64_t seq, double us) {
  const Seconds t = microseconds(us);
  return {{"tiny", execution, forward_of_one(seq)}, {t, t, t}};
}

MeasuredKernel kernel(const std::string& name, std::int64_t read, std::int64_t write) {
  return {.site = "",
          .kernel = name,
          .time = microseconds(1),
          .hbm_read = Bytes(read),
          .hbm_write = Bytes(write),
          .l2 = Bytes(0)};
}

KernelEstimate predicted_kernel(const std::string& name, KernelKind kind, std::int64_t read) {
  KernelEstimate k;
  k.name = name;
  k.kind = kind;
  k.hbm_read = Bytes(read);
  return k;
}

// Says `us` of every block and GEMM.
Predictor always(double us) {
  return {.name = "always",
          .block =
              [us](const BlockCase&) {
                PlanEstimate e;
                e.time = microseconds(us);
                return e;
              },
          .gemm =
              [us](const MeasuredGemm&) {
                KernelEstimate e;
                e.time = microseconds(us);
                return e;
              }};
}

const ErrorRow& row(const ErrorTable& table, const std::string& what) {
  for (const ErrorRow& r : table.rows) {
    if (r.what == what) return r;
  }
  throw std::out_of_range(what);
}

TEST(ErrorStats, MeanBiasAndWorstOfMixedSigns) {
  const std::vector<double> errors = {0.1, -0.3, 0.05};
  const ErrorStats s = error_stats(errors);
  EXPECT_EQ(s.cases, 3U);
  EXPECT_NEAR(s.mape, 0.15, 1e-12);
  EXPECT_NEAR(s.bias, -0.05, 1e-12);
  EXPECT_DOUBLE_EQ(s.worst, -0.3);
}

TEST(ErrorStats, NothingIsNoCase) { EXPECT_EQ(error_stats({}).cases, 0U); }

TEST(Validate, JudgesBlocksWithHandWorkedErrors) {
  // given two blocks of 100 and 200 µs and a predictor that says 110 of both
  Measurements m;
  m.blocks = {block("eager", 8, 100), block("composed", 8, 200)};
  const Predictor predictors[] = {always(110)};
  // when
  const ErrorTable t = validate(m, predictors);
  // then the errors are +10 % and -45 %
  const ErrorStats& all = row(t, "block time").by_predictor[0];
  EXPECT_NEAR(all.mape, 0.275, 1e-9);
  EXPECT_NEAR(all.bias, -0.175, 1e-9);
  EXPECT_NEAR(row(t, "block time, worst case").by_predictor[0].worst, -0.45, 1e-9);
  EXPECT_NEAR(row(t, "  eager").by_predictor[0].mape, 0.10, 1e-9);
  EXPECT_FALSE(row(t, "block time").meets_target(0));
  EXPECT_FALSE(row(t, "block time, worst case").meets_target(0));
}

TEST(Validate, LeavesOutTrainingAndExecutionsThatAreNoPolicy) {
  Measurements m;
  m.blocks = {block("eager", 8, 100), block("torch-compile-autotuned", 8, 100)};
  m.blocks.push_back(block("eager", 8, 300));
  m.blocks.back().block.workload.phase = Phase::train;
  const Predictor predictors[] = {always(100)};
  const ErrorTable t = validate(m, predictors);
  EXPECT_EQ(row(t, "block time").by_predictor[0].cases, 1U);
  EXPECT_EQ(t.not_judged.size(), 2U);
}

TEST(Validate, JudgesGemmsOfAtLeast128Rows) {
  Measurements m;
  const SpreadOfTimes t100 = {microseconds(100), microseconds(100), microseconds(100)};
  m.gemms = {{127, 64, 64, t100}, {128, 64, 64, t100}};
  const Predictor predictors[] = {always(90)};
  const ErrorTable t = validate(m, predictors);
  const ErrorRow& gemms = row(t, "GEMM time, m >= 128");
  EXPECT_EQ(gemms.by_predictor[0].cases, 1U);
  EXPECT_NEAR(gemms.by_predictor[0].bias, -0.1, 1e-9);
  EXPECT_TRUE(gemms.meets_target(0));
}

TEST(Validate, JudgesBytesPerBlockAndPerGemmKernel) {
  // given a trace of norm, GEMM (1000 B), pointwise, GEMM (500 B) and a prediction without the norm
  Measurements m;
  m.traces = {{{"tiny", "eager", forward_of_one(8)},
               {kernel("vectorized_layer_norm_kernel", 50, 50), kernel("nvjet_a", 900, 100),
                kernel("elementwise", 100, 100), kernel("nvjet_b", 500, 0)}}};
  PlanEstimate estimate;
  estimate.kernels = {predicted_kernel("qkv", KernelKind::gemm, 1100),
                      predicted_kernel("act", KernelKind::pointwise, 1),
                      predicted_kernel("down", KernelKind::gemm, 400)};
  estimate.hbm_read = Bytes(1350);
  const Predictor predictors[] = {
      {.name = "p", .block = [&](const BlockCase&) { return estimate; }, .gemm = {}}};
  // when
  const ErrorTable t = validate(m, predictors);
  // then the block is 1350 of 1800 and the GEMMs +10 % and -20 %
  EXPECT_NEAR(row(t, "HBM bytes per block").by_predictor[0].bias, -0.25, 1e-9);
  const ErrorStats& gemm = row(t, "HBM bytes per GEMM kernel").by_predictor[0];
  EXPECT_EQ(gemm.cases, 2U);
  EXPECT_NEAR(gemm.mape, 0.15, 1e-9);
  EXPECT_NEAR(gemm.bias, -0.05, 1e-9);
}

TEST(Validate, AsksEachPredictorOncePerBlock) {
  Measurements m;
  m.blocks = {block("eager", 8, 100), block("eager", 16, 100)};
  m.traces = {{{"tiny", "eager", forward_of_one(8)}, {kernel("nvjet", 10, 10)}}};
  std::map<std::string, int> asked;
  const Predictor predictors[] = {{.name = "p",
                                   .block =
                                       [&](const BlockCase& c) {
                                         ++asked[c.label()];
                                         return PlanEstimate{};
                                       },
                                   .gemm = {}}};
  validate(m, predictors);
  EXPECT_EQ(asked.size(), 2U);
  for (const auto& [label, count] : asked) EXPECT_EQ(count, 1) << label;
}

TEST(Validate, SkipsWhatAPredictorDoesNotKnow) {
  Measurements m;
  m.blocks = {block("eager", 8, 100), block("eager", 16, 100)};
  const Predictor predictors[] = {{.name = "p",
                                   .block =
                                       [](const BlockCase& c) {
                                         if (c.workload.seq == 8) throw Unpredicted{};
                                         PlanEstimate e;
                                         e.time = microseconds(100);
                                         return e;
                                       },
                                   .gemm = {}}};
  const ErrorTable t = validate(m, predictors);
  EXPECT_EQ(row(t, "block time").by_predictor[0].cases, 1U);
  EXPECT_EQ(t.cases.size(), 1U);
  EXPECT_THAT(t.not_judged, ElementsAre("1 case: not predicted"));
}

TEST(WorstCases, AreSortedByMagnitudeAndLimited) {
  Measurements m;
  m.blocks = {block("eager", 8, 100), block("eager", 16, 50), block("eager", 32, 400)};
  const Predictor predictors[] = {always(100)};
  const auto worst = worst_cases(validate(m, predictors), Quantity::block_time, 0, 2);
  ASSERT_EQ(worst.size(), 2U);
  EXPECT_EQ(worst[0].label, "tiny eager forward 1x16");  // +100 %
  EXPECT_EQ(worst[1].label, "tiny eager forward 1x32");  // -75 %
}

std::vector<std::pair<std::size_t, std::size_t>> aligned(std::vector<KernelKind> measured,
                                                         std::vector<KernelKind> predicted) {
  std::vector<std::pair<std::size_t, std::size_t>> out;
  for (const KernelPair& p : align_kernels(measured, predicted)) {
    out.emplace_back(p.measured, p.predicted);
  }
  return out;
}

TEST(AlignKernels, PairsEqualSequencesOneToOne) {
  using enum KernelKind;
  EXPECT_THAT(aligned({norm, gemm, attention}, {norm, gemm, attention}),
              ElementsAre(std::pair(0U, 0U), std::pair(1U, 1U), std::pair(2U, 2U)));
}

TEST(AlignKernels, SkipsWhatOnlyOneSideHas) {
  using enum KernelKind;
  // measured has a split-K reduction after its first GEMM, predicted a norm in front
  EXPECT_THAT(aligned({gemm, reduction, pointwise, gemm}, {norm, gemm, pointwise, gemm}),
              ElementsAre(std::pair(0U, 1U), std::pair(2U, 2U), std::pair(3U, 3U)));
}

TEST(AlignKernels, NeverPairsDifferentKinds) {
  using enum KernelKind;
  EXPECT_TRUE(aligned({gemm}, {norm}).empty());
  EXPECT_TRUE(aligned({}, {norm}).empty());
}

TEST(ModelOfGemm, FindsTheModelWithThatProjection) {
  ModelConfig llama;
  llama.name = "llama";
  llama.D = 64;
  llama.F = 128;
  llama.H = 4;
  llama.Hkv = 2;
  llama.d = 16;
  const std::vector<Projections> models{projections_of(llama)};
  const auto name = [&](std::int64_t n, std::int64_t k) {
    return model_of_gemm({.m = 128, .n = n, .k = k, .time = {}}, models);
  };
  EXPECT_EQ(name((4 + 2 * 2) * 16, 64), "llama");
  EXPECT_EQ(name(256, 64), "llama");
  EXPECT_EQ(name(64, 128), "llama");
  EXPECT_EQ(name(64, 256), "");
}

}  // namespace
}  // namespace fuseline
