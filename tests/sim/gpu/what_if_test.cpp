#include "sim/gpu/what_if.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "base/error.h"
#include "tests/sim/sim_support.h"

namespace fuseline {
namespace {

using ::testing::HasSubstr;

TEST(WhatIfGpu, WithoutFactorsNothingChanges) {
  const Gpu gpu = with_what_if(test_gpu(), {});
  EXPECT_EQ(gpu.name, test_gpu().name);
  EXPECT_EQ(gpu.hbm_bandwidth, test_gpu().hbm_bandwidth);
}

TEST(WhatIfGpu, EachFactorChangesItsNumbersAndNoOthers) {
  const Gpu base = test_gpu();
  const Gpu hbm = with_what_if(base, {.hbm_bandwidth = 2});
  EXPECT_DOUBLE_EQ(hbm.hbm_bandwidth / base.hbm_bandwidth, 2);
  EXPECT_DOUBLE_EQ(hbm.hbm_bandwidth_sustained / base.hbm_bandwidth_sustained, 2);
  EXPECT_EQ(hbm.l2_bandwidth, base.l2_bandwidth);
  EXPECT_EQ(hbm.tensor_bf16, base.tensor_bf16);
  const Gpu l2 = with_what_if(base, {.l2_bandwidth = 0.5, .l2_capacity = 3});
  EXPECT_DOUBLE_EQ(l2.l2_bandwidth / base.l2_bandwidth, 0.5);
  EXPECT_EQ(l2.l2_capacity, 3 * base.l2_capacity);
  EXPECT_EQ(l2.hbm_bandwidth, base.hbm_bandwidth);
  const Gpu half = with_what_if(base, {.sm_count = 0.5});
  EXPECT_EQ(half.sm_count, 66);
  EXPECT_DOUBLE_EQ(half.tensor_bf16 / base.tensor_bf16, 0.5);
  EXPECT_EQ(half.sm_clock, base.sm_clock);
  const Gpu fast = with_what_if(base, {.sm_clock = 1.25});
  EXPECT_DOUBLE_EQ(fast.sm_clock / base.sm_clock, 1.25);
  EXPECT_DOUBLE_EQ(fast.tensor_clock / base.tensor_clock, 1.25);
  EXPECT_DOUBLE_EQ(fast.vector_fp32 / base.vector_fp32, 1.25);
  EXPECT_EQ(fast.sm_count, base.sm_count);
}

TEST(WhatIfGpu, RatesFollowWholeSms) {
  const Gpu base = test_gpu();
  const Gpu third = with_what_if(base, {.sm_count = 1.0 / 7});
  EXPECT_EQ(third.sm_count, 19);
  EXPECT_DOUBLE_EQ(third.tensor_bf16 / base.tensor_bf16, 19.0 / 132);
}

TEST(WhatIfGpu, IsNoLongerTheGpuThatWasMeasured) {
  Gpu base = test_gpu();
  base.calibrated = true;
  base.checks = {{.measurements = "m",
                  .policies = {"coda"},
                  .looked_at = {},
                  .blocks = 1,
                  .mean_error = 0.03,
                  .worst_error = 0.03,
                  .source = "s",
                  .date = "2026"}};
  base.title = "Test";
  const Gpu gpu = with_what_if(base, {.hbm_bandwidth = 1.5, .sm_count = 0.5});
  EXPECT_EQ(gpu.name, "test-gpu+what-if");
  EXPECT_FALSE(gpu.calibrated);
  EXPECT_TRUE(gpu.checks.empty());
  EXPECT_EQ(gpu.title, "Test, what if HBM bandwidth × 1.5, SMs × 0.5");
}

TEST(WhatIfGpu, RefusesFactorsOutOfRange) {
  for (const double factor : {0.0, -1.0, 0.1, 9.0, std::numeric_limits<double>::quiet_NaN()}) {
    try {
      static_cast<void>(with_what_if(test_gpu(), {.l2_capacity = factor}));
      ADD_FAILURE() << factor << " was accepted";
    } catch (const InputError& error) {
      EXPECT_THAT(error.what(), HasSubstr("what_if.l2_capacity"));
    }
  }
}

}  // namespace
}  // namespace fuseline
