// Energy of blocks, what a power limit does to their times, and launches one by one.
#include <gtest/gtest.h>

#include "sim/block/estimate.h"
#include "sim/report/energy.h"
#include "tests/sim/sim_support.h"

namespace fuseline {
namespace {

Gpu h200_with_tdp(double factor) {
  Gpu gpu = load_gpu("h200");
  gpu.tdp = gpu.tdp * factor;
  return gpu;
}

// In a run without end, so that the limit acts fully.
PlanEstimate large_block(const Gpu& gpu) {
  return simulate(make_plan("per-operator", llama_7b(), forward(4, 2048)), gpu, Fidelity::hierarchy,
                  {.repeats = 1e9});
}

TEST(Energy, ALimitHalfAsHighMakesALargeBlockSlowerAndTwiceAsHighFaster) {
  const PlanEstimate half = large_block(h200_with_tdp(0.5));
  const PlanEstimate one = large_block(h200_with_tdp(1));
  const PlanEstimate twice = large_block(h200_with_tdp(2));
  EXPECT_GT(half.time / one.time, 1.2);
  EXPECT_GT(one.time / twice.time, 1.05);
  EXPECT_LT(half.clock_factor, one.clock_factor);
  EXPECT_EQ(twice.clock_factor, 1.0);
  // At a lower clock the same work takes less energy, but the GPU idles for longer.
  EXPECT_LT(half.dynamic_energy, one.dynamic_energy);
}

TEST(Energy, NoThrottledBlockDrawsMoreThanTheLimit) {
  for (const double factor : {0.5, 0.8, 1.0}) {
    const Gpu gpu = h200_with_tdp(factor);
    const PlanEstimate e = large_block(gpu);
    const double watts = energy_of(e, gpu, {}).value.value() / e.time.value();
    EXPECT_LE(watts, gpu.tdp.value() * 1.001) << factor;
    EXPECT_GT(watts, gpu.tdp.value() * 0.97) << factor;
  }
}

TEST(Energy, OfABlockIsThatOfItsKernels) {
  const Gpu gpu = load_gpu("h200");
  for (const char* policy : {"unfused", "coda", "whole-block"}) {
    const PlanEstimate e =
        simulate(make_plan(policy, small_llama(), forward(2, 333)), gpu, Fidelity::hierarchy);
    double sum = 0;
    for (const KernelEstimate& k : e.kernels) {
      const Energy one = energy_of(k, gpu, {.low = 0.9, .high = 1.2});
      EXPECT_LT(one.low, one.value);
      EXPECT_LT(one.value, one.high);
      sum += one.value.value();
    }
    EXPECT_NEAR(sum, energy_of(e, gpu, {}).value.value(), 1e-12) << policy;
  }
}

TEST(Launching, FewTokensWaitForTheCpuAndManyDoNot) {
  const Gpu gpu = load_gpu("h200");
  const auto time = [&](const Workload& w, Launching launching) {
    return simulate(make_plan("eager", llama_7b(), w), gpu, Fidelity::hierarchy,
                    {.launching = launching});
  };
  const PlanEstimate graph = time(decode(1, 1, 100), Launching::graph);
  const PlanEstimate stream = time(decode(1, 1, 100), Launching::stream);
  EXPECT_EQ(graph.launch_wait, Seconds());
  EXPECT_DOUBLE_EQ(stream.time.value(),
                   gpu.constants.launch.stream.value() * static_cast<double>(stream.launches));
  EXPECT_DOUBLE_EQ((graph.time + stream.launch_wait).value(), stream.time.value());
  const PlanEstimate many = time(forward(4, 2048), Launching::stream);
  EXPECT_EQ(many.launch_wait, Seconds());
}

}  // namespace
}  // namespace fuseline
