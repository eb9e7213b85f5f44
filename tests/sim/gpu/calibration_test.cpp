#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "base/error.h"
#include "sim/block/estimate.h"
#include "sim/gpu/constant_table.h"
#include "sim/judge/refit.h"
#include "tests/sim/sim_support.h"

namespace fuseline {
namespace {

TEST(Calibration, EveryConstantHasANameAUnitAndAMeaning) {
  std::string previous;
  for (const ConstantInfo& c : constant_table()) {
    EXPECT_LT(previous, c.name) << "sorted, without repeats";
    previous = c.name;
    EXPECT_FALSE(std::string(c.unit).empty()) << c.name;
    EXPECT_FALSE(std::string(c.meaning).empty()) << c.name;
    const std::string name = c.name;
    EXPECT_EQ(name.ends_with("_us"), std::string(c.unit) == "us") << name;
    EXPECT_EQ(name.ends_with("_ms"), std::string(c.unit) == "ms") << name;
  }
}

// No two names mean the same field, and none is forgotten: set each to a value of its own.
TEST(Calibration, EveryNameMeansAFieldOfItsOwn) {
  Constants constants;
  double next = 1;
  for (const ConstantInfo& c : constant_table()) set_value(c, constants, next++);
  next = 1;
  for (const ConstantInfo& c : constant_table()) {
    EXPECT_NEAR(value_of(c, constants), next++, 1e-9) << c.name;
  }
  EXPECT_EQ(sizeof(Constants), constant_table().size() * sizeof(double))
      << "a field of Constants has no name";
}

TEST(Calibration, AConstantIsReadAndSetByNameInItsUnit) {
  Gpu gpu = test_gpu();
  set_constant(gpu, "stream.strided_instructions", 87);
  EXPECT_EQ(gpu.constants.stream.strided_instructions, 87);
  EXPECT_EQ(constant_of(gpu, "stream.strided_instructions"), 87);
  set_constant(gpu, "gemm.start_us", 5);
  EXPECT_DOUBLE_EQ(to_us(gpu.constants.gemm.start), 5);
  set_constant(gpu, "power.reaction_ms", 40);
  EXPECT_DOUBLE_EQ(gpu.constants.power.reaction.value(), 0.04);
  set_constant(gpu, "l2.capacity_fraction", 0.5);
  EXPECT_EQ(effective_l2_capacity(gpu), Bytes(30 << 20));
}

TEST(Calibration, OnePartitionKeepsNoSecondCopy) {
  Gpu gpu = test_gpu();
  gpu.l2_partitions = 1;
  const Bytes two = effective_l2_capacity(gpu);
  set_architecture(gpu, gpu.architecture);
  EXPECT_GT(effective_l2_capacity(gpu), two);
}

TEST(Calibration, AValueOutOfRangeNamesTheFieldAndTheRange) {
  Gpu gpu = test_gpu();
  try {
    set_constant(gpu, "stream.hbm_fraction", -0.5);
    FAIL() << "accepted";
  } catch (const InputError& e) {
    EXPECT_EQ(e.problem().file, "test-gpu");
    EXPECT_EQ(e.problem().field, "calibration.stream.hbm_fraction");
    EXPECT_NE(e.problem().allowed.find("from 0.5"), std::string::npos);
  }
}

// So wide that a GPU never seen fits, so narrow that every estimate is a number.
TEST(Calibration, BothEndsOfEveryRangeGiveFiniteEstimates) {
  const Plan plan = make_plan("eager", small_llama(), forward(1, 96));
  const Plan own = make_plan("coda", small_llama(), decode(3, 1, 2000));
  const auto expect_finite = [&](const Gpu& gpu, const std::string& what) {
    for (const Plan* p : {&plan, &own}) {
      const PlanEstimate e = simulate(*p, gpu, Fidelity::hierarchy);
      EXPECT_TRUE(std::isfinite(e.time.value()) && e.time > Seconds(0)) << what;
    }
  };
  Gpu all_least = test_gpu(), all_most = test_gpu();
  for (const auto& [name, origin] : test_gpu().architecture->origins) {
    for (const double value : {origin.least, origin.most}) {
      Gpu gpu = test_gpu();
      set_constant(gpu, name, value);
      expect_finite(gpu, name);
    }
    set_constant(all_least, name, origin.least);
    set_constant(all_most, name, origin.most);
  }
  expect_finite(all_least, "the least of all");
  expect_finite(all_most, "the most of all");
}

TEST(Calibration, ValuesOutOfTheRangeAreRefusedWhoeverSetThem) {
  const Gpu good = test_gpu();
  for (const auto& [name, origin] : good.architecture->origins) {
    for (const double value :
         {origin.least - 1e-6, origin.most * (1 + 1e-9), 1e300, -1.0, std::nan("")}) {
      Gpu gpu = good;
      EXPECT_THROW(set_constant(gpu, name, value), InputError) << name << " " << value;
    }
  }
}

// A fit may search no value that a file could not hold.
TEST(Calibration, FitsStayWithinTheRanges) {
  const auto hopper = load_architecture("hopper");
  for (const FitParameter& p : refit_parameters()) {
    const auto origin = hopper->origins.find(p.name);
    ASSERT_NE(origin, hopper->origins.end()) << p.name;
    EXPECT_GE(p.lower, origin->second.least) << p.name;
    EXPECT_LE(p.upper, origin->second.most) << p.name;
  }
}

TEST(Calibration, AnUnknownNameIsABugOfOurs) {
  Gpu gpu = test_gpu();
  EXPECT_THROW(constant_of(gpu, "stream.no_such_constant"), InternalError);
  EXPECT_THROW(set_constant(gpu, "stream.no_such_constant", 1), InternalError);
}

}  // namespace
}  // namespace fuseline
