// Predictions of scans: positive, finite, never under what is possible, longer with more tokens.
#include "sim/kernels/scan_kernel.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "model/config/model_files.h"
#include "model/policy.h"
#include "sim/block/estimate.h"
#include "sim/block/limits.h"
#include "sim/gpu/plan_target.h"
#include "tests/model/scan_support.h"
#include "tests/sim/sim_support.h"

namespace fuseline {
namespace {

using test::ScanCase;

KernelEstimate estimate_of(const ScanCase& c, const Gpu& gpu) {
  const Plan plan = make_plan("coda", test::scan_graph(c));
  return simulate(plan, gpu, Fidelity::hierarchy).kernels.at(0);
}

TEST(ScanKernel, IsNeverUnderWhatIsPossible) {
  std::mt19937 random(41);
  const Gpu gpu = test_gpu();
  for (int round = 0; round < 60; ++round) {
    ScanCase c = test::random_scan(random);
    if (random() % 2 == 0) {  // as large as those of models
      c.shape = {16 * test::pick(random, 1, 8),
                 1,
                 64,
                 128,
                 test::pick(random, 1, 4),
                 test::pick(random, 1, 5000),
                 random() % 3 == 0 ? 1 : 64 * test::pick(random, 1, 4)};
    }
    const Plan plan = make_plan("per-operator", test::scan_graph(c));
    for (const Fidelity fidelity : {Fidelity::roofline, Fidelity::hierarchy}) {
      const PlanEstimate e = simulate(plan, gpu, fidelity);
      EXPECT_TRUE(std::isfinite(e.time.value())) << test::describe(c);
      EXPECT_GT(e.time, Seconds());
      EXPECT_GE(e.time, e.limits.time) << test::describe(c);
      EXPECT_GE(e.hbm_read + e.hbm_write, e.limits.least);
      EXPECT_GE(e.time, e.flops / boosted_tensor_peak(gpu, Dtype::bf16));
    }
  }
}

// Token by token each of them takes its time, and in chunks each chunk does: the last one is as
// long as the others, however few tokens it has.
TEST(ScanKernel, TakesLongerWithMoreTokens) {
  for (const Dtype dtype : {Dtype::bf16, Dtype::fp32}) {
    const bool in_chunks = dtype == Dtype::bf16;
    Seconds before;
    std::int64_t steps_before = 0;
    for (std::int64_t tokens = 64; tokens <= 3000; tokens += tokens / 3) {
      const ScanCase c{.shape = {24, 1, 64, 128, 2, tokens, 64}, .dtype = dtype};
      const Seconds time = estimate_of(c, test_gpu()).time;
      const std::int64_t steps = in_chunks ? ceil_div(tokens, scan_chunk_tokens) : tokens;
      EXPECT_GE(time, before) << tokens << " tokens";
      if (steps > steps_before) {
        EXPECT_GT(time, before) << tokens << " tokens";
      }
      before = time;
      steps_before = steps;
    }
  }
}

// Chunks of a head wait for each other: few heads leave most of the GPU idle, so more sequences
// cost little until every multiprocessor has a thread block.
TEST(ScanKernel, IsASerialChainOfChunks) {
  const auto time = [](std::int64_t batch, std::int64_t tokens, Dtype dtype) {
    return estimate_of({.shape = {16, 1, 64, 128, batch, tokens, 64}, .dtype = dtype}, test_gpu());
  };
  const KernelEstimate one = time(1, 4096, Dtype::bf16);
  EXPECT_EQ(one.bound, Bound::sync);
  EXPECT_EQ(one.kind, KernelKind::scan);
  EXPECT_EQ(one.tile, (std::vector<std::int64_t>{64, 16}));
  const KernelEstimate eight = time(8, 4096, Dtype::bf16);
  EXPECT_EQ(eight.tile, (std::vector<std::int64_t>{64, 64}));
  EXPECT_LT(eight.time, 2 * one.time);
  EXPECT_GT(time(9, 4096, Dtype::bf16).time, 1.8 * eight.time);  // two blocks on some
  EXPECT_GT(time(1, 8192, Dtype::bf16).time, 1.8 * one.time - 0.8 * time(1, 64, Dtype::bf16).time);
  EXPECT_GT(time(1, 4096, Dtype::fp32).time, 2 * one.time);
}

// One new token of many sequences moves its states, and takes about as long as they take through
// HBM.
TEST(ScanKernel, DecodingMovesTheStates) {
  const ScanCase c{.shape = {64, 1, 64, 128, 64, 1, 1},
                   .state = true,
                   .state_after = true,
                   .dtype = Dtype::bf16};
  const KernelEstimate e = estimate_of(c, test_gpu());
  const double states = 2.0 * 64 * 64 * 64 * 128 * 4;
  EXPECT_EQ(e.bound, Bound::hbm);
  EXPECT_GE((e.hbm_read + e.hbm_write).as_double(), 0.95 * states);
  EXPECT_LT(e.time.value(), 1.6 * states / 4.5e12);
  EXPECT_GT(e.time.value(), states / 4.8e12);
}

// Mamba-2 2.7B trained on 2,048 tokens and Mamba 2.8B on 1,024, on an H100: what coda puts behind a
// scan and its gradient loads and stores, and these kernels take longer than those of per-operator
// (h100-kernels-third and h100-train-fuseline, kernels.csv). No constant was fitted to these.
TEST(ScanKernel, WhatRunsBehindAScanTakesItsTime) {
  struct Measured {
    const char *model, *kernel;
    std::int64_t tokens;
    double per_operator, coda;  // us
  };
  const Gpu gpu = load_gpu("h100-sxm");
  for (const Measured& m : {Measured{"mamba2-2.7b", "scan", 2048, 128.05, 148.75},
                            Measured{"mamba2-2.7b", "d_scan", 2048, 2944.9, 3019.7},
                            Measured{"mamba-2.8b", "scan", 1024, 209.1, 240.8},
                            Measured{"mamba-2.8b", "d_scan", 1024, 872.7, 904.4}}) {
    const ModelConfig model = load_model(m.model);
    const Workload work{.phase = Phase::train, .batch = 1, .seq = m.tokens};
    const auto us = [&](const char* policy) {
      const PlanEstimate e =
          simulate(make_plan(policy, model, work, plan_target(gpu)), gpu, Fidelity::hierarchy);
      const auto found = std::ranges::find(e.kernels, m.kernel, &KernelEstimate::name);
      return found == e.kernels.end() ? 0 : to_us(found->time);
    };
    const double more = us("coda") - us("per-operator");
    EXPECT_NEAR(more, m.coda - m.per_operator, 0.25 * (m.coda - m.per_operator))
        << m.model << " " << m.kernel;
  }
}

}  // namespace
}  // namespace fuseline
