// How slow a baseline may be, and that limits allow what was measured.
#include "sim/judge/audit/baseline.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/gpu/gpu.h"
#include "sim/judge/audit/audit.h"
#include "tests/sim/judge/audit/claim_support.h"

namespace fuseline::audit {
namespace {

using ::testing::HasSubstr;

// TinyLlama's forward pass of that many tokens on an H200, as if it took that long.
Measurements measured(const std::string& execution, std::int64_t seq, double us) {
  Measurements all;
  all.meta.gpu = "h200";
  all.path = execution;
  const Workload w{.phase = Phase::forward, .batch = 1, .seq = seq, .context = 0};
  const Seconds t = microseconds(us);
  all.blocks.push_back({{"tinyllama", execution, w}, {t, t, t}});
  return all;
}

Audited audited(const std::string& factor, const std::vector<Measurements>& measurements) {
  std::string text =
      speed_up_text("factor = { value = " + factor + ", unit = \"x\" }", "baseline = \"eager\"");
  text.replace(text.find("[128, 256]"), 10, "128");
  return audit_claims({claim_from(text)}, measurements).claims.front();
}

TEST(Baseline, ThatWasMeasuredTakesThePlaceOfItsPrediction) {
  const Audited without = audited("30", {});
  ASSERT_EQ(without.verdict.judgement, Judgement::contradicts);
  const Outcome& o = without.tried.front().outcome;
  EXPECT_FALSE(o.baseline.measured);
  EXPECT_DOUBLE_EQ(o.baseline.factor, 1 + kTimeTolerance);

  const double us = to_us(o.least) * 30;
  const Audited with = audited("30", {measured("eager", 128, us)});
  const SlowestBaseline& baseline = with.tried.front().outcome.baseline;
  EXPECT_TRUE(baseline.measured);
  EXPECT_NEAR(to_us(baseline.time), us, 1e-6);
  EXPECT_EQ(with.verdict.judgement, Judgement::only_if) << with.verdict.reason;
  EXPECT_NEAR(boldest_limit(with), 30 * (1 + kLimitTolerance), 1e-6);
}

TEST(Baseline, WithoutAMeasurementIsAsMuchSlowerAsOthersWere) {
  const Audited alone = audited("3", {});
  const Outcome& o = alone.tried.front().outcome;
  // Three times the prediction, of a block that is not the claim's.
  const Audited other = audited("3", {measured("eager", 64, 1e6)});
  EXPECT_FALSE(other.tried.front().outcome.baseline.measured);
  EXPECT_GT(other.tried.front().outcome.baseline.factor, 100);
  // Blocks of other executions say nothing of this baseline.
  const Audited unrelated = audited("3", {measured("composed", 64, 1e6)});
  EXPECT_DOUBLE_EQ(unrelated.tried.front().outcome.baseline.factor, o.baseline.factor);
}

// Predicted is less than two; two were measured in this very setting.
TEST(Baseline, AMeasuredSpeedUpDecidesInItsSetting) {
  Measurements all = measured("eager", 128, 300);
  all.blocks.push_back(measured("coda", 128, 100).blocks.front());
  const Audited a = audited("3", {all});
  EXPECT_EQ(a.verdict.judgement, Judgement::plausible) << a.verdict.reason;
  EXPECT_THAT(a.verdict.reason, HasSubstr("what was measured decides, a speed-up of 3.00x"));
  EXPECT_LT(predicted_range(a).most, 2.5);
  // Of two folders the ratio is taken within one.
  const Audited apart = audited("3", {measured("eager", 128, 300), measured("coda", 128, 100)});
  EXPECT_TRUE(apart.tried.front().outcome.measured.empty());
}

TEST(Baseline, TheObstacleSaysWhatTheLimitStandsOn) {
  const Audited a = audited("1000", {measured("eager", 128, 100)});
  EXPECT_EQ(a.verdict.judgement, Judgement::contradicts);
  EXPECT_THAT(a.verdict.reason, HasSubstr("the measured baseline, 100.0 us, is at most"));
}

// Whatever was measured of a baseline and a policy is possible, in every pair of one case.
TEST(SlowBaseline, LimitsAllowEverySpeedUpThatWasMeasured) {
  const std::vector<Measurements> all = shipped_measurements();
  std::size_t pairs = 0;
  for (const Measurements& m : all) {
    for (const MeasuredBlock& before : m.blocks) {
      for (const MeasuredBlock& after : m.blocks) {
        const BlockCase &a = before.block, &b = after.block;
        const bool wanted = a.execution == "unfused" && b.execution == "coda" &&
                            same_case({a.model, "", a.workload}, {b.model, "", b.workload});
        if (!wanted || a.workload.phase == Phase::train) continue;
        ++pairs;
        const double ratio = before.time.median / after.time.median;
        const bool decode = a.workload.phase == Phase::decode;
        const std::string text =
            "id = \"c\"\nstatement = \"s\"\nkind = \"speed-up\"\n" + source_text() +
            "[figure]\nfactor = { value = " + std::to_string(ratio) +
            ", unit = \"x\" }\n[setting]\nmodel = \"" + a.model + "\"\ngpu = \"" + m.meta.gpu +
            "\"\nphase = \"" + name_of(a.workload.phase) +
            "\"\nbatch = " + std::to_string(a.workload.batch) +
            (decode ? "\ncontext = " : "\nseq = ") + std::to_string(a.workload.kv_tokens()) +
            "\nbaseline = \"unfused\"\npolicy = \"coda\"\n";
        const Audited audited = audit_claims({claim_from(text)}, all).claims.front();
        EXPECT_NE(audited.verdict.judgement, Judgement::contradicts)
            << m.meta.gpu << " " << a.label() << " " << ratio << ": " << audited.verdict.reason;
        EXPECT_GE(boldest_limit(audited), ratio) << a.label();
      }
    }
  }
  EXPECT_GE(pairs, 10U);
}

// The tolerance of the limits holds for every GPU that is shipped.
TEST(LimitTolerance, CoversTheDatasheetOfEveryShippedGpu) {
  for (const std::string& name : gpu_names()) {
    const Gpu gpu = load_gpu(name);
    EXPECT_LE(gpu.hbm_bandwidth / gpu.hbm_bandwidth_sustained, 1 + kLimitTolerance) << name;
    EXPECT_LE(gpu.sm_clock / gpu.tensor_clock, 1 + kLimitTolerance) << name;
  }
}

}  // namespace
}  // namespace fuseline::audit
