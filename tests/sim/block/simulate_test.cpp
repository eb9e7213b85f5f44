// The simulator as a whole: what every estimate must satisfy, and block times measured on an H200.
#include <gtest/gtest.h>

#include <cmath>

#include "model/operators/operator_table.h"
#include "sim/block/block_walk.h"
#include "sim/block/estimate.h"
#include "sim/block/limits.h"
#include "sim/block/roofline.h"
#include "tests/sim/sim_support.h"

namespace fuseline {
namespace {

PlanEstimate run(const std::string& policy, const ModelConfig& config, const Workload& w,
                 const Gpu& gpu = test_gpu(), Fidelity fidelity = Fidelity::hierarchy) {
  return simulate(make_plan(policy, config, w), gpu, fidelity);
}

TEST(Simulate, SumsAreThoseOfItsKernels) {
  for (const std::string& policy : kPolicies) {
    for (const Fidelity fidelity : {Fidelity::roofline, Fidelity::hierarchy}) {
      const PlanEstimate e = run(policy, small_llama(), forward(1, 200), test_gpu(), fidelity);
      Seconds time;
      Bytes read, write, l2;
      Flops flops;
      for (const KernelEstimate& k : e.kernels) {
        EXPECT_GT(k.time.value(), 0) << policy << ' ' << k.name;
        EXPECT_TRUE(std::isfinite(k.time.value())) << policy << ' ' << k.name;
        EXPECT_FALSE(k.name.empty());
        time += k.time;
        read += k.hbm_read;
        write += k.hbm_write;
        l2 += k.l2;
        flops += k.flops;
      }
      EXPECT_DOUBLE_EQ(e.time.value(), time.value());
      EXPECT_EQ(e.hbm_read, read);
      EXPECT_EQ(e.hbm_write, write);
      EXPECT_EQ(e.l2, l2);
      EXPECT_EQ(e.flops, flops);
      std::int64_t launches = 0;
      for (const KernelEstimate& k : e.kernels) launches += k.launches;
      EXPECT_EQ(e.launches, launches);
    }
  }
}

TEST(Simulate, FlopsDoNotDependOnThePolicyButForNormsAndBookkeeping) {
  const Flops expected = run("unfused", llama_7b(), forward(1, 256)).flops;
  for (const std::string& policy : kPolicies) {
    const Flops flops = run(policy, llama_7b(), forward(1, 256)).flops;
    EXPECT_NEAR(flops.as_double() / expected.as_double(), 1, 0.002) << policy;
  }
}

TEST(Simulate, EveryLayerReadsItsWeightsAndCachesFromHbm) {
  for (const ModelConfig& config : {small_llama(), small_gpt(), llama_7b()}) {
    for (const Workload& w : {forward(1, 128), decode(2, 1, 512)}) {
      for (const std::string& policy : kPolicies) {
        const Plan plan = make_plan(policy, config, w);
        Bytes must;
        for (std::size_t i = 0; i < plan.graph.tensors().size(); ++i) {
          const Tensor& t = plan.graph.tensors()[i];
          const bool read = !plan.graph.consumers(TensorId{static_cast<std::int32_t>(i)}).empty();
          if (t.role == Role::weight && t.rows > 1 && read) must += t.bytes();
          if (t.role == Role::cache)
            must += t.bytes() - checked_product<Bytes>(w.rows(), t.cols, 2);
        }
        const PlanEstimate e = simulate(plan, test_gpu(), Fidelity::hierarchy);
        EXPECT_GE(e.hbm_read, must) << config.name << ' ' << policy;
      }
    }
  }
}

TEST(Simulate, ReplaysOfASmallBlockStayInL2) {
  const Plan plan = make_plan("eager", small_llama(), forward(1, 128));
  const PlanEstimate replay =
      simulate(plan, test_gpu(), Fidelity::hierarchy, {.replay = true, .runs = 2, .repeats = 24});
  EXPECT_EQ(replay.hbm_read, Bytes());
  EXPECT_EQ(replay.hbm_write, Bytes());
  EXPECT_GT(simulate(plan, test_gpu(), Fidelity::hierarchy).hbm_read, Bytes());
}

TEST(Simulate, TheSteadyStateComesWithTheSecondBlock) {
  for (const Workload& w : {forward(1, 1024), decode(4, 1, 1024)}) {
    const Plan plan = make_plan("torch-compile", llama_7b(), w);
    const auto after = [&](int runs) {
      return simulate(plan, test_gpu(), Fidelity::hierarchy,
                      {.replay = false, .runs = runs, .repeats = 24});
    };
    const PlanEstimate two = after(2);
    const PlanEstimate four = after(4);
    EXPECT_NEAR((two.hbm_read + two.hbm_write).as_double(),
                (four.hbm_read + four.hbm_write).as_double(), 0.01 * four.hbm_read.as_double());
  }
}

TEST(Simulate, MoreBandwidthIsNeverSlower) {
  for (const std::string& policy : kPolicies) {
    for (const Workload& w : {forward(1, 512), decode(8, 1, 1024)}) {
      const Plan plan = make_plan(policy, llama_7b(), w);
      const auto time = [&](double hbm, double l2) {
        Gpu gpu = test_gpu();
        gpu.hbm_bandwidth *= hbm;
        gpu.hbm_bandwidth_sustained *= hbm;
        gpu.l2_bandwidth *= l2;
        gpu.tdp = Watts(1e6);  // energy is another matter
        return to_us(simulate(plan, gpu, Fidelity::hierarchy).time);
      };
      // A library's choice of tile ignores differences of 3 %.
      const double base = time(1, 1);
      EXPECT_LE(time(1.5, 1), base * 1.03) << policy;
      EXPECT_LE(time(3, 1), base * 1.03) << policy;
      EXPECT_LE(time(1, 2), base * 1.03) << policy;
      EXPECT_GE(time(0.5, 1), base * 0.97) << policy;
    }
  }
}

TEST(Simulate, MoreTokensAreNeverFaster) {
  const Gpu gpu = test_gpu();
  for (const std::string& policy : kPolicies) {
    double previous = 0;
    for (const std::int64_t tokens : {16, 64, 128, 256, 512, 1024, 2048}) {
      const double now = to_us(run(policy, small_llama(), forward(1, tokens), gpu).time);
      EXPECT_GE(now, previous * 0.97) << policy << ' ' << tokens;
      previous = now;
    }
    previous = 0;
    for (const std::int64_t context : {128, 512, 2048, 8192}) {
      const double now = to_us(run(policy, small_gpt(), decode(4, 1, context), gpu).time);
      EXPECT_GE(now, previous * 0.97) << policy << " context " << context;
      previous = now;
    }
  }
}

TEST(Simulate, APowerLimitLowersTheClockOfLongRunsOnly) {
  const Plan plan = make_plan("torch-compile", llama_7b(), forward(1, 2048));
  const auto after = [&](double repeats) {
    return simulate(plan, test_gpu(), Fidelity::hierarchy,
                    {.replay = true, .runs = 2, .repeats = repeats});
  };
  const PlanEstimate first = after(1);
  const PlanEstimate sustained = after(10000);
  EXPECT_EQ(first.clock_factor, 1.0);
  EXPECT_LT(sustained.clock_factor, 1.0);
  EXPECT_GT(sustained.time, first.time);
}

TEST(Simulate, AWholeBlockIsOneLaunchThatWaitsAtItsBarriers) {
  Gpu gpu = test_gpu();
  const Plan plan = make_plan("whole-block", llama_7b(), decode(1, 1, 2048));
  const PlanEstimate e = simulate(plan, gpu, Fidelity::hierarchy);
  ASSERT_EQ(e.launches, 1);
  set_constant(gpu, "sync.barrier_us", 5.0);
  const PlanEstimate slow = simulate(plan, gpu, Fidelity::hierarchy);
  const auto barriers = static_cast<double>(plan.kernels.front().phases.size() - 1);
  EXPECT_GE(to_us(slow.time - e.time), 3.4 * barriers - 0.01);
  set_constant(gpu, "sync.barrier_us", 10.0);
  EXPECT_EQ(
      simulate(make_plan("whole-block", small_llama(), decode(1, 1, 64)), gpu, Fidelity::hierarchy)
          .kernels.front()
          .bound,
      Bound::sync);
}

// A launch of several phases is another kernel when one of its phases takes another tile or another
// split: properties of sizes compare equal kernels, and ranges of sizes are made by choices.
TEST(Simulate, AWholeBlockShowsWhatItsPhasesChoose) {
  const auto choice = [](const Workload& w) {
    const PlanEstimate e = run("whole-block", llama_7b(), w);
    EXPECT_EQ(e.kernels.size(), 1U);
    return e.kernels.front().choice;
  };
  const auto one = choice(decode(1, 1, 2048));
  EXPECT_FALSE(one.empty());
  EXPECT_EQ(choice(decode(1, 1, 2049)), one);
  EXPECT_NE(choice(decode(200, 1, 2048)), one) << "tiles of 200 rows";
  EXPECT_NE(choice(decode(1, 1, 100)), one) << "keys that are not split";
}

TEST(Simulate, ReproducesMeasuredBlocks) {
  // LLaMA-2-7B on an H200, PyTorch 2.11, CUDA-graph replays (2026-11-20): time in us, HBM bytes in
  // MB.
  struct Case {
    const char* policy;
    Workload workload;
    double us;
    double megabytes;  // 0 = not counted
  };
  for (const Case& c :
       {Case{"eager", forward(1, 2048), 1530, 1906.6},
        Case{"composed", forward(1, 2048), 1750, 2280.9},
        Case{"torch-compile", forward(1, 2048), 1229, 1674.3},
        Case{"eager", forward(1, 512), 426, 0}, Case{"eager", decode(16, 1, 2048), 297, 0},
        Case{"torch-compile", decode(1, 1, 2048), 143, 445.6}}) {
    const PlanEstimate e =
        simulate(make_plan(c.policy, llama_7b(), c.workload), test_gpu(), Fidelity::hierarchy,
                 {.replay = true, .runs = 2, .repeats = 24});
    EXPECT_NEAR(to_us(e.time), c.us, 0.10 * c.us) << c.policy;
    if (c.megabytes > 0) {
      EXPECT_NEAR((e.hbm_read + e.hbm_write).as_double() / 1e6, c.megabytes, 0.12 * c.megabytes)
          << c.policy;
    }
  }
}

TEST(Roofline, TakesTheSlowerOfTheTwoCeilings) {
  const Gpu gpu = test_gpu();
  const Plan plan = make_plan("per-operator", llama_7b(), forward(1, 2048));
  for (const KernelEstimate& k : roofline(plan, gpu)) {
    if (k.name == "gate_up") {
      // 2·M·N·K at 989.4 TFLOP/s is 373 us; 287 MB at 4.5 TB/s would be 64 us.
      EXPECT_NEAR(to_us(k.time), 2.0 * 2048 * 22016 * 4096 / 989.4e6, 0.01);
      EXPECT_EQ(k.bound, Bound::tensor);
      EXPECT_EQ(k.compulsory, Bytes(2 * (2048 * 4096 + 22016 * 4096 + 2048 * 22016)));
    }
    if (k.name == "residual1") {
      EXPECT_NEAR(to_us(k.time), 3 * 2048 * 4096 * 2 / 4.5e6, 0.01);
      EXPECT_EQ(k.bound, Bound::hbm);
    }
  }
}

TEST(Roofline, NeverExceedsTheHierarchy) {
  for (const std::string& policy : kPolicies) {
    if (policy == "whole-block")
      continue;  // finds tensors in L2 that the roofline counts as HBM bytes
    const PlanEstimate low =
        run(policy, llama_7b(), forward(1, 1024), test_gpu(), Fidelity::roofline);
    const PlanEstimate high = run(policy, llama_7b(), forward(1, 1024));
    EXPECT_LE(low.time, high.time) << policy;
  }
}

TEST(Limits, AreBelowEveryEstimate) {
  const Gpu gpu = test_gpu();
  for (const std::string& policy : kPolicies) {
    const PlanEstimate e = run(policy, llama_7b(), forward(1, 2048));
    EXPECT_LT(e.limits.time, e.time) << policy;
    EXPECT_LE(e.limits.least, e.limits.compulsory) << policy;
    EXPECT_LE(e.limits.least, e.limits.capacity_bound) << policy;
    EXPECT_LT(e.limits.capacity_bound, e.hbm_read + e.hbm_write) << policy;
  }
}

TEST(Limits, FollowTheirFormulas) {
  // Given a block so long that its GEMMs cannot keep an operand on chip,
  Gpu gpu = test_gpu();
  gpu.l2_capacity = Bytes(1 << 20);
  gpu.smem_per_sm = gpu.registers_per_sm = Bytes(1 << 10);
  const Plan plan = make_plan("eager", llama_7b(), forward(1, 2048));
  const Limits limits = limits_of(plan.graph, gpu);
  // then 2·M·N·K/√S - 2·S words for each of four GEMMs: weights 202.4 M elements, S = (1 MiB + 264
  // KiB) / 2 words.
  const double words = (1048576.0 + 132 * 2 * 1024.0) / 2;
  const double weights = 4096.0 * (12288 + 4096 + 22016 + 11008);
  EXPECT_NEAR(limits.capacity_bound.as_double(),
              (2 * 2048 * weights / std::sqrt(words) - 4 * 2 * words) * 2,
              1e-6 * limits.capacity_bound.as_double());
  // and compulsory bytes are weights, norms, tables, x and y.
  EXPECT_EQ(limits.compulsory, Bytes(static_cast<std::int64_t>(weights) * 2 + 2 * 4096 * 2 +
                                     2 * 2048 * 128 * 2 + 2 * 2048 * 4096 * 2));
}

}  // namespace
}  // namespace fuseline
