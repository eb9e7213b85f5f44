#include "sim/gpu/power.h"

#include <gtest/gtest.h>

#include <cmath>

namespace fuseline {
namespace {

PowerModel model() {
  PowerModel m;
  m.limit = Watts(700);
  m.constant = Watts(100);
  m.per_tensor_teraflop = Joules(1.0);
  m.per_hbm_gigabyte = Joules(0.05);
  m.per_l2_gigabyte = Joules(0.01);
  m.clock_exponent = 2.0;
  m.reaction = microseconds(50000);
  return m;
}

TEST(Power, EnergyAddsUpOverTensorCoresAndMemory) {
  EXPECT_NEAR(
      dynamic_energy(model(), Flops(2'000'000'000'000), Bytes(4'000'000'000), Bytes(10'000'000'000))
          .value(),
      2.0 + 0.2 + 0.1, 1e-12);
}

TEST(Power, ALoadWithinTheLimitKeepsTheBoostClock) {
  const PowerLoad load{Joules(0.6), microseconds(1000)};  // 600 W + 100 W
  EXPECT_DOUBLE_EQ(unlimited_power(model(), load).value(), 700);
  EXPECT_EQ(steady_clock_factor(model(), load), 1.0);
  EXPECT_EQ(steady_clock_factor(model(), PowerLoad{}), 1.0);
}

TEST(Power, TheSteadyClockDrawsExactlyTheLimit) {
  const PowerLoad load{Joules(0.9), microseconds(1000)};
  const double factor = steady_clock_factor(model(), load);
  EXPECT_NEAR(factor, std::sqrt(600.0 / 900.0), 1e-12);
  EXPECT_NEAR(100 + 900 * factor * factor, 700, 1e-9);
}

TEST(Power, TheLimitActsAfterItsReactionTime) {
  const PowerLoad load{Joules(0.9), microseconds(1000)};
  const double steady = steady_clock_factor(model(), load);
  EXPECT_NEAR(clock_factor_after(model(), load, microseconds(20000)), 1.0, 0.001);
  EXPECT_NEAR(clock_factor_after(model(), load, microseconds(50000)), (1 + steady) / 2, 1e-9);
  EXPECT_NEAR(clock_factor_after(model(), load, microseconds(90000)), steady, 0.001);
}

TEST(Power, LoadsOfABlockAreAveraged) {
  // A hot kernel beside an equally long cold one stays within the limit.
  PowerLoad block{Joules(0.9), microseconds(1000)};
  EXPECT_LT(steady_clock_factor(model(), block), 1.0);
  block += PowerLoad{Joules(0.1), microseconds(1000)};
  EXPECT_EQ(steady_clock_factor(model(), block), 1.0);
}

TEST(Power, ABenchmarkWalksThroughItsRotatedOperands) {
  // 100 MB operands: 50 launches per graph, the median is in the tenth replay. A larger set: one
  // launch.
  EXPECT_NEAR(to_us(benchmark_elapsed(Bytes(100'000'000), microseconds(50))), 25000, 1e-6);
  EXPECT_NEAR(to_us(benchmark_elapsed(Bytes(6'000'000'000), microseconds(50))), 500, 1e-6);
}

TEST(Power, EveryGpuHasAModelThatHoldsItsLimit) {
  Gpu gpu;
  gpu.tdp = Watts(400);
  gpu.tensor_bf16 = FlopsPerSecond(312e12);
  gpu.hbm_bandwidth = BytesPerSecond(2e12);
  gpu.l2_bandwidth = BytesPerSecond(5e12);
  set_architecture(gpu, load_architecture("ampere"));
  const PowerModel m = power_model(gpu);
  // All units at full rate for one millisecond must exceed the limit, an idle one must not.
  const PowerLoad all{
      dynamic_energy(m, Flops(312'000'000'000), Bytes(2'000'000'000), Bytes(5'000'000'000)),
      microseconds(1000)};
  EXPECT_GT(unlimited_power(m, all), m.limit);
  EXPECT_LT(steady_clock_factor(m, all), 1.0);
  EXPECT_LT(m.constant, m.limit);
}

}  // namespace
}  // namespace fuseline
