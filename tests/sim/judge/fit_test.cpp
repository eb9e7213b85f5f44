#include "sim/judge/fit.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/error.h"

namespace fuseline {
namespace {

// Times of a two-constant model, t = bytes / bandwidth + overhead.
std::vector<double> log_errors(const ConstantValues& c, double bandwidth, double overhead) {
  std::vector<double> r;
  for (const double bytes : {1e3, 1e4, 1e5, 1e6, 1e7, 1e8}) {
    const double measured = bytes / bandwidth + overhead;
    r.push_back(std::log((bytes / c.at("bandwidth") + c.at("overhead")) / measured));
  }
  return r;
}

const std::vector<FitParameter> kParameters = {{"bandwidth", 1e3, 1, 1e6, 5.0},
                                               {"overhead", 1.0, 1e-3, 1e6, 5.0}};

TEST(Fit, RecoversConstantsThatMadeTheData) {
  const FitResult fit =
      fit_constants(kParameters, [](const ConstantValues& c) { return log_errors(c, 4500.0, 7.0); },
                    {.iterations = 30});
  EXPECT_NEAR(fit.constants.at("bandwidth") / 4500.0, 1.0, 0.01);
  EXPECT_NEAR(fit.constants.at("overhead") / 7.0, 1.0, 0.01);
  EXPECT_LT(fit.mean_abs, 0.01);
  EXPECT_GT(fit.initial_mean_abs, 0.5);
}

TEST(Fit, OneOutlierDoesNotPullTheConstants) {
  const FitResult fit = fit_constants(kParameters,
                                      [](const ConstantValues& c) {
                                        std::vector<double> r = log_errors(c, 4500.0, 7.0);
                                        r.push_back(std::log(c.at("bandwidth") / 9000.0));
                                        return r;
                                      },
                                      {.iterations = 40});
  EXPECT_NEAR(fit.constants.at("bandwidth") / 4500.0, 1.0, 0.08);
}

TEST(Fit, ConstantWithoutInfluenceKeepsItsValue) {
  std::vector<FitParameter> parameters = kParameters;
  parameters.push_back({"idle", 3.0, 1, 10, 0.5});
  const FitResult fit =
      fit_constants(parameters, [](const ConstantValues& c) { return log_errors(c, 4500.0, 7.0); });
  EXPECT_DOUBLE_EQ(fit.constants.at("idle"), 3.0);
}

TEST(Fit, StaysInsideTheBounds) {
  std::vector<FitParameter> parameters = kParameters;
  parameters[0].upper = 2000;
  const FitResult fit =
      fit_constants(parameters, [](const ConstantValues& c) { return log_errors(c, 4500.0, 7.0); },
                    {.iterations = 20});
  EXPECT_LE(fit.constants.at("bandwidth"), 2000);
}

TEST(Fit, ChangingResidualCountIsOurBug) {
  int calls = 0;
  EXPECT_THROW(fit_constants(kParameters,
                             [&](const ConstantValues&) {
                               return std::vector<double>(static_cast<std::size_t>(++calls), 1.0);
                             }),
               InternalError);
}

}  // namespace
}  // namespace fuseline
