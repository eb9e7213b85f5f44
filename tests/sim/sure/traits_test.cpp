#include "sim/sure/traits.h"

#include <cmath>

#include <gtest/gtest.h>

#include "sim/sure/estimate_bands.h"

namespace fuseline {
namespace {

KernelEstimate kernel(KernelKind kind, const char* name, double us) {
  KernelEstimate k;
  k.kind = kind;
  k.operators = {name};
  k.time = Seconds(us * 1e-6);
  return k;
}

// A product, attention and a kernel of rows: 200 us.
PlanEstimate plan(const char* policy) {
  PlanEstimate e;
  e.policy = policy;
  e.kernels = {kernel(KernelKind::gemm, "gateup", 120), kernel(KernelKind::attention, "attn", 40),
               kernel(KernelKind::pointwise, "swiglu", 40)};
  e.time = Seconds(200e-6);
  e.launches = 3;
  e.limits.time = Seconds(100e-6);
  return e;
}

double differing(const PlanEstimate& slow, const PlanEstimate& fast) {
  return gain_class(gain_side(slow, Phase::forward), gain_side(fast, Phase::forward), 1.1)
      .traits.at(1);
}

TEST(Traits, OfATimeAreItsLimitsItsMakerItsKindAndOtherKernels) {
  const WorkClass work = time_class(plan("coda"), Phase::forward);
  ASSERT_EQ(work.traits.size(), trait_names("time").size());
  EXPECT_DOUBLE_EQ(work.traits[0], std::log(0.5));
  EXPECT_EQ(work.traits[1], 1);
  EXPECT_EQ(work.traits[2], 0);
  EXPECT_DOUBLE_EQ(work.traits[3], 0.2);
  EXPECT_EQ(time_class(plan("eager"), Phase::forward).traits.at(1), 0);
}

TEST(Traits, AnEstimateWithoutLimitsHasNone) {
  PlanEstimate saved = plan("coda");
  saved.limits = {};
  EXPECT_TRUE(time_class(saved, Phase::forward).traits.empty());
}

TEST(Traits, KernelsThatBothPlansHaveCancel) {
  PlanEstimate fast = plan("coda");
  EXPECT_DOUBLE_EQ(differing(plan("per-operator"), fast), std::log(0.02));
  // A product of another tile differs, but it is no kernel of rows.
  fast.kernels[0].tile = {128, 128, 64};
  EXPECT_DOUBLE_EQ(differing(plan("per-operator"), fast), std::log(0.02));
  // One kernel fewer: 40 of 360 us.
  fast = plan("coda");
  fast.kernels.pop_back();
  EXPECT_DOUBLE_EQ(differing(plan("per-operator"), fast), std::log(0.02 + 40.0 / 360));
  // The same kernel, 5 % slower: both count.
  fast = plan("coda");
  fast.kernels[2].time = Seconds(42e-6);
  EXPECT_DOUBLE_EQ(differing(plan("per-operator"), fast), std::log(0.02 + 82.0 / 402));
}

TEST(Traits, OfAGainAreThoseOfTheSlowerPlanWhicheverIsTheBase) {
  PlanEstimate fast = plan("coda");
  fast.kernels.pop_back();
  const GainSide one = gain_side(plan("per-operator"), Phase::forward);
  const GainSide other = gain_side(fast, Phase::forward);
  EXPECT_EQ(gain_class(one, other, 1.25).traits, gain_class(other, one, 0.8).traits);
  EXPECT_DOUBLE_EQ(gain_class(one, other, 1.25).traits.at(0), std::log(200e-6 / 3));
  EXPECT_EQ(gain_class(one, other, 1.25).traits.at(2), 0);
  const GainSide library = gain_side(plan("eager"), Phase::forward);
  EXPECT_EQ(gain_class(library, other, 1.25).traits.at(2), 1);
}

TEST(Traits, WidenBandsOfTheirPhaseAsFarAsRowsHadThem) {
  const std::vector<Spread> spreads = {{.what = "time",
                                        .phase = "forward",
                                        .trait = "others",
                                        .slope = 2,
                                        .centre = 0.1,
                                        .least = 0,
                                        .most = 0.5}};
  WorkClass work = time_class(plan("coda"), Phase::forward);
  EXPECT_DOUBLE_EQ(spread_factor(spreads, work), std::exp(2 * 0.1));
  work.traits[3] = 0.9;
  EXPECT_DOUBLE_EQ(spread_factor(spreads, work), std::exp(2 * 0.4));
  BandClass any{.of = {}, .low = -0.1, .high = 0.1, .rows = 9, .models = 3};
  any.of.what = "time";
  BandClass forward = any;
  forward.of.phase = "forward";
  EXPECT_NEAR(BandTable({any, forward}, {}, spreads).of(work, Standing::fitted, 1).high,
              std::exp(0.1 * std::exp(0.8)), 1e-12);
  // The subject's class was found without traits.
  EXPECT_NEAR(BandTable({any}, {}, spreads).of(work, Standing::fitted, 1).high, std::exp(0.1),
              1e-12);
  work.phase = "decode";
  EXPECT_EQ(spread_factor(spreads, work), 1);
  work.phase = "forward";
  work.traits.clear();
  EXPECT_EQ(spread_factor(spreads, work), 1);
}

}  // namespace
}  // namespace fuseline
