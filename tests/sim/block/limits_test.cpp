// No estimate beats what is possible, and what is possible does not depend on who asks.
#include "sim/block/limits.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "model/blocks/block.h"
#include "model/operators/operator_table.h"
#include "sim/block/block_walk.h"
#include "sim/block/estimate.h"
#include "tests/sim/sim_support.h"

namespace fuseline {
namespace {

Workload train(std::int64_t batch, std::int64_t seq) {
  return {.phase = Phase::train, .batch = batch, .seq = seq, .context = 0, .dtype = Dtype::bf16};
}

// A random block: any head width from 32 to 256, heads that share keys or not, odd feed-forward
// widths. Every second one has an odd size somewhere.
ModelConfig random_config(std::mt19937& random) {
  const auto pick = [&](std::int64_t low, std::int64_t high) {
    return low + static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(high - low + 1));
  };
  ModelConfig c = random() % 2 == 0 ? small_llama() : small_gpt();
  c.d = 2 * pick(16, 128);
  c.Hkv = std::int64_t{1} << pick(0, 3);
  c.H = c.is_all("gpt") ? c.Hkv : c.Hkv * pick(1, 4);
  c.D = c.H * c.d;
  c.F = 2 * pick(c.D / 2, 2 * c.D);
  c.max_positions = 1 << 20;
  return c;
}

Workload random_workload(std::mt19937& random, const ModelConfig& config) {
  const auto pick = [&](std::int64_t low, std::int64_t high) {
    return low + static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(high - low + 1));
  };
  // Log-uniform, so that short and long ones are met.
  const auto spread = [&](double low, double high) {
    const double u = static_cast<double>(random()) / 4294967296.0;
    return static_cast<std::int64_t>(low * std::pow(high / low, u));
  };
  // A case costs what its rows and keys cost: wide models get fewer.
  const double room = std::min(1.0, 1024.0 / static_cast<double>(config.D));
  switch (random() % 5) {
    case 0:
    case 1:
      return forward(pick(1, 4), spread(1, 1 + 1500 * room));
    case 2:
      return train(pick(1, 2), spread(1, 1 + 700 * room));
    default: {
      const std::int64_t context = spread(2, 2 + 9000 * room);
      const std::int64_t seq =
          random() % 3 == 0 ? std::min<std::int64_t>(context, pick(1, 130)) : 1;
      return decode(spread(1, 1 + 100 * room), seq, context);
    }
  }
}

// Everything that an estimate must satisfy, in words; empty = it does.
std::string broken_limit(const PlanEstimate& e) {
  const Bytes hbm = e.hbm_read + e.hbm_write;
  if (hbm < e.limits.least) return "HBM bytes below the least";
  if (hbm < e.limits.capacity_bound) return "HBM bytes below what the on-chip capacity allows";
  if (e.time < e.limits.time) return "time below that at the limits";
  return "";
}

// `cases` random shapes, each under a random policy on one of the GPUs.
void expect_no_estimate_below_its_limits(int cases, std::uint32_t seed) {
  std::vector<Gpu> gpus;
  for (const char* name : {"h200", "a100-sxm-80gb", "l40s", "rtx4090"})
    gpus.push_back(load_gpu(name));
  const std::vector<PolicyInfo> all = policies();
  std::mt19937 random(seed);
  for (int i = 0; i < cases; ++i) {
    const ModelConfig config = random_config(random);
    const Workload w = random_workload(random, config);
    const Gpu& gpu = gpus[random() % gpus.size()];
    const PolicyInfo& policy = all[random() % all.size()];
    if (w.phase == Phase::train && !policy.trains) continue;
    const PlanEstimate e = simulate(make_plan(policy.name, config, w), gpu, Fidelity::hierarchy);
    ASSERT_EQ(broken_limit(e), "")
        << policy.name << " on " << gpu.name << ", phase " << name_of(w.phase) << ", batch "
        << w.batch << ", seq " << w.seq << ", context " << w.context << ", D " << config.D << ", H "
        << config.H << ", Hkv " << config.Hkv << ", d " << config.d << ", F " << config.F << ": "
        << (e.hbm_read + e.hbm_write).value() << " bytes of " << e.limits.least.value() << ", "
        << to_us(e.time) << " us of " << to_us(e.limits.time);
  }
}

TEST(Limits, NoEstimateOfARandomBlockIsBelowThem) {
  expect_no_estimate_below_its_limits(300, 20261122);
}

TEST(LongLimits, NoEstimateOfThreeThousandRandomBlocksIsBelowThem) {
  expect_no_estimate_below_its_limits(3000, 7);
}

TEST(Limits, NoCachedKeyIsFoundBecauseItsNeighbourWasRead) {
  // Contexts and head widths that are no multiples of 64: 757.6 us were predicted where reading the
  // cache alone takes 789.2 us.
  const Plan plan = make_plan("coda", llama_7b(), decode(64, 1, 3000));
  const PlanEstimate e = simulate(plan, test_gpu(), Fidelity::hierarchy);
  const Bytes cache = checked_product<Bytes>(2, 64 * 3000, 4096, 2);
  EXPECT_GE(e.hbm_read, cache);
  EXPECT_EQ(broken_limit(e), "");
}

TEST(Limits, AreOneNumberABlockWhateverThePolicy) {
  for (const Workload& w : {forward(1, 512), decode(4, 1, 700), train(1, 256)}) {
    std::set<std::int64_t> compulsory, least;
    std::set<double> time;
    for (const PolicyInfo& policy : policies()) {
      if (w.phase == Phase::train && !policy.trains) continue;
      const Plan plan = make_plan(policy.name, small_llama(), w);
      const Limits l = simulate(plan, test_gpu(), Fidelity::roofline).limits;
      compulsory.insert(l.compulsory.value());
      least.insert(l.least.value());
      time.insert(l.time.value());
    }
    EXPECT_EQ(compulsory.size(), 1U) << name_of(w.phase);
    EXPECT_EQ(least.size(), 1U) << name_of(w.phase);
    EXPECT_EQ(time.size(), 1U) << name_of(w.phase);
  }
}

TEST(Limits, WhatTheNeighboursMayLeaveInL2IsNotDemandedOfHbm) {
  const Gpu gpu = test_gpu();
  const Limits l = limits_of(build_block(llama_7b(), forward(1, 2048)), gpu);
  const Bytes matrices(2 * 202375168);
  const Bytes vectors(2 * 2 * 4096), x(2 * 2048 * 4096), tables(2 * 2 * 2048 * 128);
  EXPECT_EQ(l.compulsory, matrices + vectors + 2 * x + tables);
  EXPECT_EQ(l.own, matrices + vectors);
  EXPECT_EQ(l.least, matrices);
  // Inputs beyond the L2's 60 MiB come from HBM, outputs beyond it go there.
  const Limits large = limits_of(build_block(llama_7b(), forward(4, 8192)), gpu);
  const Bytes l2 = gpu.l2_capacity, big(2 * 4 * 8192 * 4096LL), table(2 * 2 * 8192 * 128);
  EXPECT_EQ(large.least, matrices + (big + table - l2) + (big - l2));
}

TEST(Limits, WeightsGradientsAreTheBlocksOwn) {
  const Graph graph = build_block(small_llama(), train(1, 64));
  const CompulsoryBytes bytes = compulsory_bytes(graph);
  Bytes gradients;
  for (std::size_t i = 0; i < graph.tensors().size(); ++i) {
    const TensorId id{static_cast<std::int32_t>(i)};
    if (is_weight_gradient(graph, id)) gradients += graph.tensor(id).bytes();
  }
  EXPECT_GT(gradients, Bytes());
  EXPECT_EQ(bytes.written - bytes.shared_written, gradients);
  // y and dx stay.
  EXPECT_EQ(bytes.shared_written, Bytes(2 * 2 * 64 * 256));
}

TEST(Limits, WhatOneLayerWritesForItselfIsChargedAlsoWhereItStaysDirty) {
  // A small model's new cache rows and gradients stay in L2 for layers; each layer writes its own.
  for (const Workload& w : {decode(2, 1, 60), train(1, 64)}) {
    for (const PolicyInfo& policy : policies()) {
      if (w.phase == Phase::train && !policy.trains) continue;
      const Plan plan = make_plan(policy.name, small_llama(), w);
      const CompulsoryBytes bytes = compulsory_bytes(plan.block);
      const PlanEstimate e = simulate(plan, test_gpu(), Fidelity::hierarchy);
      EXPECT_GE(e.hbm_write, bytes.written - bytes.shared_written)
          << policy.name << ' ' << name_of(w.phase);
    }
  }
}

}  // namespace
}  // namespace fuseline
