#include "cuda/counters/gpu_state.h"

#include <chrono>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "cuda/driver/driver.h"

namespace fuseline::cuda {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

GpuState state(double mhz, double watts, std::vector<std::string> throttling = {}) {
  GpuState s;
  s.sm_clock = Hertz(mhz * 1e6);
  s.power = Watts(watts);
  s.power_limit = Watts(700);
  s.celsius = static_cast<int>(watts / 10);
  s.throttling = std::move(throttling);
  return s;
}

TEST(GpuStates, SummaryOfClocksAndPower) {
  const GpuStateSummary summary =
      summarise({state(1980, 300), state(1400, 690, {"software power cap"}), state(1755, 600)});
  EXPECT_EQ(summary.samples, 3U);
  EXPECT_EQ(summary.sm_clock_median, Hertz(1755e6));
  EXPECT_EQ(summary.sm_clock_least, Hertz(1400e6));
  EXPECT_EQ(summary.sm_clock_most, Hertz(1980e6));
  EXPECT_NEAR(summary.power_mean.value().value(), 530, 1e-9);
  EXPECT_EQ(summary.power_limit, Watts(700));
  EXPECT_EQ(summary.celsius_most, 69);
  EXPECT_THAT(summary.throttling, ElementsAre("software power cap"));
}

TEST(GpuStates, WhatIsMissingStaysEmpty) {
  GpuState only_power;
  only_power.power = Watts(100);
  const GpuStateSummary summary = summarise({GpuState{}, only_power, GpuState{}});
  EXPECT_FALSE(summary.sm_clock_median.has_value());
  EXPECT_EQ(summary.power_mean, Watts(100));
  EXPECT_EQ(summarise({}).samples, 0U);
  EXPECT_FALSE(summarise({}).power_mean.has_value());
}

TEST(GpuStates, ReasonsInWords) {
  EXPECT_THAT(throttle_reasons(0x1 | 0x2), IsEmpty());
  EXPECT_THAT(throttle_reasons(0x4 | 0x40),
              ElementsAre("software power cap", "hardware thermal slowdown"));
  // The order of the bits, whatever the samples' order.
  EXPECT_THAT(summarise({state(1, 1, throttle_reasons(0x80)), state(1, 1, throttle_reasons(0x4))})
                  .throttling,
              ElementsAre("software power cap", "hardware power brake"));
}

TEST(GpuMonitorAnywhere, WithoutNvmlEverythingIsEmpty) {
  GpuMonitor monitor;
  if (monitor.missing().empty()) GTEST_SKIP() << "NVML is here";
  EXPECT_FALSE(monitor.read().sm_clock.has_value());
  EXPECT_EQ(monitor.driver_version(), "");
  monitor.start();
  EXPECT_EQ(monitor.stop().samples, 0U);
}

TEST(SlowGpuCountersState, ReadsClocksAndPowerOfTheGpuAtWork) {
  std::optional<Device> device;
  try {
    device.emplace();
  } catch (const MissingError& error) {
    GTEST_SKIP() << error.what();
  }
  GpuMonitor monitor;
  ASSERT_EQ(monitor.missing(), "");
  EXPECT_NE(monitor.driver_version(), "");
  DeviceBuffer memory = device->allocate(Bytes(std::int64_t{1} << 30));
  Stream stream = device->stream();
  for (int repeat = 0; repeat < 2; ++repeat) {
    monitor.start();
    // About half a second at HBM's speed.
    for (int i = 0; i < 1500; ++i) stream.zero(memory.address(), memory.size());
    stream.synchronize("filling memory");
    const GpuStateSummary summary = monitor.stop();
    EXPECT_GE(summary.samples, 3U);
    ASSERT_TRUE(summary.sm_clock_median.has_value());
    EXPECT_LE(summary.sm_clock_least, summary.sm_clock_median);
    EXPECT_LE(summary.sm_clock_median, summary.sm_clock_most);
    EXPECT_GT(summary.sm_clock_median->value(), 100e6);
    EXPECT_LT(summary.sm_clock_median->value(), 5e9);
    ASSERT_TRUE(summary.memory_clock.has_value());
    ASSERT_TRUE(summary.power_mean.has_value());
    EXPECT_GT(summary.power_mean->value(), 10);
    ASSERT_TRUE(summary.power_limit.has_value());
    EXPECT_LT(summary.power_mean->value(), 1.2 * summary.power_limit->value());
  }
}

}  // namespace
}  // namespace fuseline::cuda
