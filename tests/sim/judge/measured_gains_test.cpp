#include "sim/judge/measured_gains.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "base/data_dir.h"

namespace fuseline {
namespace {

MeasuredGain gain(double log_measured, double log_predicted) {
  return {.folder = {},
          .block = {},
          .measured = std::exp(log_measured),
          .predicted = std::exp(log_predicted)};
}

TEST(MeasuredGains, SlopesAndOrdersAreOfTheLogarithms) {
  // On the line m = 0.5 p - 0.03.
  std::vector<MeasuredGain> gains;
  for (const double p : {-0.05, 0.01, 0.04, 0.1, 0.2}) gains.push_back(gain(0.5 * p - 0.03, p));
  const GainAgreement a = agreement_of(gains);
  EXPECT_EQ(a.cases, 5U);
  EXPECT_NEAR(a.slope, 0.5, 1e-12);
  const double xx = 0.0025 + 0.0001 + 0.0016 + 0.01 + 0.04;
  EXPECT_NEAR(a.slope_through_none, 0.5 - 0.03 * 0.3 / xx, 1e-12);
  EXPECT_NEAR(std::log1p(a.mean_predicted), 0.06, 1e-12);
  EXPECT_NEAR(std::log1p(a.mean_measured), 0.0, 1e-12);
  // 0.01 is no order; 0.04 was measured as -0.01.
  EXPECT_EQ(a.orders, 4U);
  EXPECT_EQ(a.wrong, 1U);
  EXPECT_TRUE(wrong_order(gains[2]));
  EXPECT_FALSE(wrong_order(gains[1])) << "measured as a loss, and predicted as no difference";
}

TEST(MeasuredGains, AGainThatIsAlwaysOffByAsMuchHasNoSpread) {
  const GainAgreement a =
      agreement_of(std::vector{gain(0.1, 0.2), gain(-0.1, 0.0), gain(0.0, 0.1)});
  EXPECT_NEAR(a.spread, 0, 1e-8);
  EXPECT_NEAR(a.slope, 1, 1e-9);
}

TEST(MeasuredGains, OfNothingOrOfEqualPredictionsThereIsNoSlope) {
  EXPECT_EQ(agreement_of({}).cases, 0U);
  const GainAgreement a = agreement_of(std::vector{gain(0.1, 0.0), gain(0.2, 0.0)});
  EXPECT_EQ(a.slope, 0);
  EXPECT_EQ(a.slope_through_none, 0);
}

TEST(MeasuredGains, AreOfBlocksThatWereMeasuredUnderBoth) {
  const std::string folder = (data_dir() / "measurements" / "h200-fuseline-odd").string();
  const std::vector<MeasuredGain> gains = measured_gains(folder, "coda", "per-operator");
  ASSERT_EQ(gains.size(), 7U);
  for (const MeasuredGain& g : gains) {
    EXPECT_EQ(g.folder, "h200-fuseline-odd");
    EXPECT_EQ(g.block.execution, "coda");
    // No fusion of one block's pointwise work gains or loses a third.
    EXPECT_NEAR(g.measured, 1, 0.33);
    EXPECT_NEAR(g.predicted, 1, 0.33);
  }
  const std::vector<MeasuredGain> back = measured_gains(folder + "/", "per-operator", "coda");
  ASSERT_EQ(back.size(), 7U);
  EXPECT_NEAR(back[0].measured * gains[0].measured, 1, 1e-12);
  EXPECT_NEAR(back[0].predicted * gains[0].predicted, 1, 1e-12);
  EXPECT_TRUE(measured_gains(folder, "coda", "xla").empty());
}

TEST(MeasuredGains, TablesOfEarlierKernelsSaySo) {
  MeasurementMeta meta;
  EXPECT_FALSE(is_of_earlier_kernels(meta));
  meta.notes = {"rivals.csv: no earlier kernels: of theirs"};
  EXPECT_FALSE(is_of_earlier_kernels(meta));
  meta.notes.emplace_back("earlier kernels: these were slower");
  EXPECT_TRUE(is_of_earlier_kernels(meta));
  const auto earlier = [](const char* name) {
    return measured_gains((data_dir() / "measurements" / name).string(), "coda", "per-operator")
        .front()
        .earlier_kernels;
  };
  EXPECT_TRUE(earlier("h200-fuseline-odd"));
  EXPECT_FALSE(earlier("h100-held-second"));
}

}  // namespace
}  // namespace fuseline
