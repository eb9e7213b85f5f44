#include "sim/judge/audit/measured.h"

#include <gtest/gtest.h>

#include "tests/sim/judge/audit/claim_support.h"

namespace fuseline::audit {
namespace {

Measurements measured(std::vector<std::pair<std::string, double>> times_us) {
  Measurements all;
  all.meta.gpu = "h200";
  for (const auto& [execution, us] : times_us) {
    const Workload w{.phase = Phase::forward, .batch = 1, .seq = 128, .context = 0};
    const Seconds t = microseconds(us);
    all.blocks.push_back({{"tinyllama", execution, w}, {t, t, t}});
  }
  return all;
}

Claim claim() {
  return claim_from(speed_up_text("factor = { value = 2, unit = \"x\" }", "baseline = \"eager\""));
}

TEST(MeasuredRatios, AreOfTheClaimedPolicyWhereItWasMeasured) {
  const auto ratios =
      measured_ratios(claim(), {measured({{"eager", 30}, {"coda", 20}, {"torch-compile", 10}})});
  ASSERT_EQ(ratios.size(), 1U);
  EXPECT_TRUE(ratios[0].as_claimed);
  EXPECT_EQ(ratios[0].to, "coda");
  EXPECT_DOUBLE_EQ(ratios[0].speed_up.most, 1.5);
}

TEST(MeasuredRatios, FallBackOnTheLargestThereIs) {
  const auto ratios = measured_ratios(
      claim(), {measured({{"eager", 30}, {"composed", 40}, {"torch-compile", 10}})});
  ASSERT_EQ(ratios.size(), 1U);
  EXPECT_FALSE(ratios[0].as_claimed);
  EXPECT_EQ(describe(ratios[0]), "eager to torch-compile 3.00x in 1 block on h200");
}

TEST(MeasuredRatios, AreOfTheSameWorkOnly) {
  Measurements all = measured({{"eager", 30}, {"coda", 20}});
  all.blocks[1].block.workload.seq = 256;
  EXPECT_TRUE(measured_ratios(claim(), {all}).empty());
}

}  // namespace
}  // namespace fuseline::audit
