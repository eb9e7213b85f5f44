#include "sim/gpu/calibration.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "base/error.h"
#include "sim/block/estimate.h"
#include "sim/gpu/power.h"
#include "sim/judge/refit.h"
#include "tests/sim/sim_support.h"

namespace fuseline {
namespace {

TEST(Calibration, EveryDefaultLiesInItsRangeAndHasAUnitAndAMeaning) {
  std::string previous;
  for (const CalibrationConstant& c : calibration_constants()) {
    EXPECT_LT(previous, c.name) << "sorted, without repeats";
    previous = c.name;
    EXPECT_FALSE(std::string(c.unit).empty()) << c.name;
    EXPECT_FALSE(std::string(c.meaning).empty()) << c.name;
    for (const double value : c.defaults) {
      EXPECT_GE(value, c.lower) << c.name;
      EXPECT_LE(value, c.upper) << c.name;
    }
  }
}

TEST(Calibration, TheGpusOwnValueWins) {
  Gpu gpu = test_gpu();
  const double fallback = calibrated(gpu, "stream.strided_instructions");
  gpu.calibration["stream.strided_instructions"] = fallback + 1;
  EXPECT_EQ(calibrated(gpu, "stream.strided_instructions"), fallback + 1);
}

TEST(Calibration, AValueOutOfRangeNamesTheFieldAndTheRange) {
  Gpu gpu = test_gpu();
  gpu.calibration["stream.hbm_fraction"] = -0.5;
  try {
    calibrated(gpu, "stream.hbm_fraction");
    FAIL() << "accepted";
  } catch (const InputError& e) {
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
  for (const ConstantRange& range : constant_ranges()) {
    EXPECT_LT(range.least, range.most) << range.name;
    for (const double value : {range.least, range.most}) {
      Gpu gpu = test_gpu();
      gpu.calibration[range.name] = value;
      expect_finite(gpu, range.name);
    }
    all_least.calibration[range.name] = range.least;
    all_most.calibration[range.name] = range.most;
  }
  expect_finite(all_least, "the least of all");
  expect_finite(all_most, "the most of all");
}

TEST(Calibration, ValuesOutOfTheRangeAreRefusedWhoeverSetThem) {
  for (const ConstantRange& range : constant_ranges()) {
    for (const double value :
         {range.least - 1e-6, range.most * (1 + 1e-9), 1e300, -1.0, std::nan("")}) {
      Gpu gpu = test_gpu();
      gpu.calibration[range.name] = value;
      EXPECT_THROW(own_constant(gpu, constant_ranges(), range.name, 1), InputError)
          << range.name << " " << value;
    }
  }
  Gpu gpu = test_gpu();
  gpu.calibration["power.clock_exponent"] = -1;
  EXPECT_THROW(power_model(gpu), InputError);
}

// A fit may search no value that a file could not hold.
TEST(Calibration, FitsStayWithinTheRanges) {
  const std::vector<ConstantRange> ranges = constant_ranges();
  for (const FitParameter& p : refit_parameters()) {
    const auto range = std::ranges::find(ranges, p.name, &ConstantRange::name);
    ASSERT_NE(range, ranges.end()) << p.name;
    EXPECT_GE(p.lower, range->least) << p.name;
    EXPECT_LE(p.upper, range->most) << p.name;
  }
}

TEST(Calibration, AnUnknownNameIsABugOfOurs) {
  EXPECT_THROW(calibrated(test_gpu(), "stream.no_such_constant"), InternalError);
}

}  // namespace
}  // namespace fuseline
