#include "sim/block/residence.h"

#include <gtest/gtest.h>

#include "model/config/model_files.h"
#include "model/policy.h"
#include "sim/gpu/gpu.h"

namespace fuseline {
namespace {

std::string home_of(const Explanation& e, const std::string& tensor) {
  for (const TensorExplanation& t : e.tensors) {
    if (t.name == tensor) return t.home;
  }
  return "no such tensor";
}

Explanation located(const std::string& policy, std::int64_t seq, Bytes l2) {
  const Plan plan = make_plan(policy, load_model("tinyllama"), {.seq = seq});
  Gpu gpu = load_gpu("h200");
  gpu.l2_capacity = l2;
  Explanation e = explain(plan);
  add_residence(e, plan, simulate(plan, gpu, Fidelity::hierarchy));
  return e;
}

TEST(Residence, WhatFitsBetweenKernelsIsFoundInL2) {
  // Given 64 tokens, an activation is 256 KiB; then the next kernel finds it in a 60 MiB L2.
  const Explanation e = located("per-operator", 64, Bytes(60 << 20));
  EXPECT_EQ(home_of(e, "xn2"), "L2");
  EXPECT_EQ(home_of(e, "probs"), "on chip");
  EXPECT_TRUE(home_of(e, "w_down").starts_with("HBM")) << home_of(e, "w_down");
}

TEST(Residence, WhatDoesNotFitComesFromHbm) {
  // Given an L2 of 1 MiB and activations of 8 MiB and more.
  const Explanation e = located("per-operator", 2048, Bytes(1 << 20));
  for (const char* tensor : {"xn2", "gu", "act"}) {
    EXPECT_TRUE(home_of(e, tensor).starts_with("HBM")) << tensor << ": " << home_of(e, tensor);
  }
}

TEST(Residence, ReadsFromHbmAreThoseOfTheKernels) {
  // The tensors' misses add up to the kernels' HBM reads but for scratch memory of their own.
  const Plan plan = make_plan("coda", load_model("tinyllama"), {.seq = 512});
  const PlanEstimate estimate = simulate(plan, load_gpu("h200"), Fidelity::hierarchy);
  for (const KernelEstimate& kernel : estimate.kernels) {
    Bytes missed;
    for (const RequestedBytes& r : kernel.requested) missed += r.hbm_read;
    EXPECT_LE(missed, kernel.hbm_read) << kernel.name;
    EXPECT_GE(missed.as_double(), 0.95 * kernel.hbm_read.as_double()) << kernel.name;
  }
}

}  // namespace
}  // namespace fuseline
