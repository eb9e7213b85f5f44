#include "sim/calibration.h"

#include <gtest/gtest.h>

#include <string>

#include "model/error.h"
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

TEST(Calibration, AnUnknownNameIsABugOfOurs) {
  EXPECT_THROW(calibrated(test_gpu(), "stream.no_such_constant"), InternalError);
}

}  // namespace
}  // namespace fuseline
