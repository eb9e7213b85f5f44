#include "sim/gpu/power.h"

#include <gtest/gtest.h>

#include <algorithm>
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
  m.per_smem_gigabyte = Joules(0.002);
  m.uncertainty = 0.2;
  m.clock_exponent = 2.0;
  m.reaction = microseconds(50000);
  return m;
}

// A load whose time is all clock-bound, of this length at the boost clock.
TimeAtClock bound_by_clock(Seconds time) {
  return [=](double factor) { return time / factor; };
}

TEST(Power, EnergyAddsUpOverTensorCoresAndMemory) {
  EXPECT_NEAR(dynamic_energy(model(), Flops(2'000'000'000'000), Bytes(4'000'000'000),
                             Bytes(10'000'000'000), Bytes(50'000'000'000))
                  .value(),
              2.0 + 0.2 + 0.1 + 0.1, 1e-12);
}

TEST(Power, ALoadWithinTheLimitKeepsTheBoostClock) {
  const TimeAtClock time = bound_by_clock(microseconds(1000));
  EXPECT_DOUBLE_EQ(power_at(model(), Joules(0.6), time, 1.0).value(), 700);
  EXPECT_EQ(steady_clock_factor(model(), Joules(0.6), time), 1.0);
  EXPECT_EQ(steady_clock_factor(model(), Joules(), bound_by_clock(Seconds())), 1.0);
}

TEST(Power, TheSteadyClockDrawsExactlyTheLimit) {
  const TimeAtClock time = bound_by_clock(microseconds(1000));
  const double factor = steady_clock_factor(model(), Joules(0.9), time);
  EXPECT_NEAR(factor, std::sqrt(600.0 / 900.0), 2e-4);
  EXPECT_NEAR(power_at(model(), Joules(0.9), time, factor).value(), 700, 0.2);
}

TEST(Power, WhereNoClockSlowsItALoadDrawsTheLimitAtALowerOne) {
  // Energy falls with the clock, the time does not: 100 W + 900 W · c = 700 W.
  const auto time = [](double) { return microseconds(1000); };
  const double factor = steady_clock_factor(model(), Joules(0.9), time);
  EXPECT_NEAR(factor, 600.0 / 900.0, 2e-4);
}

TEST(Power, TheLowestClockMayExceedTheLimit) {
  const TimeAtClock time = bound_by_clock(microseconds(1000));
  EXPECT_EQ(steady_clock_factor(model(), Joules(90), time), model().lowest_clock_factor);
}

TEST(Power, TheLimitActsAfterItsReactionTime) {
  EXPECT_NEAR(clock_factor_after(model(), 0.8, microseconds(20000)), 1.0, 0.001);
  EXPECT_NEAR(clock_factor_after(model(), 0.8, microseconds(50000)), 0.9, 1e-9);
  EXPECT_NEAR(clock_factor_after(model(), 0.8, microseconds(90000)), 0.8, 0.001);
}

TEST(Power, EnergyHasTheTimesBandForItsIdlePart) {
  // 0.1 J idle and 0.5 J of work at the boost clock, 0.25 J at half of it.
  const Energy e = energy_of(model(), Joules(0.5), microseconds(1000), 0.5, 0.9, 1.3);
  EXPECT_NEAR(e.value.value(), 0.1 + 0.25, 1e-12);
  EXPECT_NEAR(e.low.value(), 0.09 + 0.2, 1e-12);
  EXPECT_NEAR(e.high.value(), 0.13 + 0.3, 1e-12);
}

TEST(Power, ABenchmarkWalksThroughItsRotatedOperands) {
  // 100 MB operands: 50 launches per graph, the median is in the tenth replay. A larger set: one
  // launch.
  EXPECT_NEAR(to_us(benchmark_elapsed(Bytes(100'000'000), microseconds(50))), 25000, 1e-6);
  EXPECT_NEAR(to_us(benchmark_elapsed(Bytes(6'000'000'000), microseconds(50))), 500, 1e-6);
}

TEST(Power, MemoryAloneThrottlesNoGpu) {
  for (const std::string& name : gpu_names()) {
    const Gpu gpu = load_gpu(name);
    const PowerModel m = power_model(gpu);
    EXPECT_LT(m.constant, m.limit) << name;
    // HBM and L2 at their full rates stay within the limit: no such load was seen to be throttled.
    const Joules memory = dynamic_energy(m, Flops(), Bytes(std::llround(gpu.hbm_bandwidth.value())),
                                         Bytes(std::llround(gpu.hbm_bandwidth.value())), Bytes());
    EXPECT_EQ(steady_clock_factor(m, memory, [](double) { return Seconds(1); }), 1.0) << name;
  }
}

}  // namespace
}  // namespace fuseline
