#include "sim/judge/band_fit.h"

#include <cmath>
#include <numbers>
#include <random>

#include <gtest/gtest.h>

#include "base/data_dir.h"
#include "sim/judge/band_rows.h"

namespace fuseline {
namespace {

Residual row(int model, double residual, Standing standing = Standing::fitted) {
  return {.work = {.what = "time",
                   .phase = "forward",
                   .maker = "own",
                   .kernels = "dense",
                   .size = "large"},
          .model = "model " + std::to_string(model),
          .where = "block",
          .standing = standing,
          .predicted = 1e-3,
          .measured = 1e-3 * std::exp(residual)};
}

// Normal residuals of 10 % in 40 models of 25 rows each.
std::vector<Residual> normal_rows(Standing standing, double sigma, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<double> error(0, sigma);
  std::vector<Residual> rows;
  for (int i = 0; i < 1000; ++i) rows.push_back(row(i % 40, error(random), standing));
  return rows;
}

TEST(BandFit, HoldsNineOfTenOfNormalErrorsAndIsNoWiderThanTheirSpread) {
  const std::vector<Residual> rows = normal_rows(Standing::fitted, 0.1, 7);
  const BandTable table = fit_bands(rows);
  const Band band = band_of(table, rows.front());
  // The quantiles' own error is sqrt(0.05 * 0.95 / n) / density = 0.0069 / (0.103 / sigma): 0.0067.
  EXPECT_NEAR(std::log(band.high), 0.1645, 3 * 0.0067);
  EXPECT_NEAR(std::log(band.low), -0.1645, 3 * 0.0067);
  const auto left_out = left_out_coverage(rows);
  ASSERT_EQ(left_out.size(), 1U);
  EXPECT_EQ(left_out.front().rows, 1000U);
  EXPECT_GE(left_out.front().share(), 0.87);
  EXPECT_LE(left_out.front().share(), 0.94);
}

// Of two machines, one errs three times as much: the other's bands hold it seldom, and its own hold
// the other's always. 90 % of normal errors are within 1.645 sigma; within a third of that are 42
// %.
TEST(BandFit, AMachineIsJudgedByTheOthersBands) {
  std::vector<Residual> rows = normal_rows(Standing::fitted, 0.03, 4);
  for (Residual& r : rows) r.gpu = "steady";
  EXPECT_TRUE(other_machine_coverage(rows).empty());
  for (const Residual& r : normal_rows(Standing::fitted, 0.09, 5)) {
    rows.push_back(r);
    rows.back().gpu = "other";
  }
  const auto both = other_machine_coverage(rows);
  ASSERT_EQ(both.size(), 1U);
  EXPECT_EQ(both.front().rows, 2000U);
  // Half of the rows at 42 %, half at more than 99 %; the standard error of that is 1 %.
  EXPECT_NEAR(both.front().share(), (0.42 + 1) / 2, 0.04);
}

// A machine that was measured after the constants had been fitted elsewhere counts as well. Its own
// rows are judged by bands that know no such machine, and so are not widened.
TEST(BandFit, AMachineWithoutFittedConstantsJudgesAndIsJudged) {
  std::vector<Residual> rows = normal_rows(Standing::fitted, 0.03, 4);
  for (Residual& r : rows) r.gpu = "steady";
  for (const Residual& r : normal_rows(Standing::checked, 0.09, 5)) {
    rows.push_back(r);
    rows.back().gpu = "other";
  }
  const auto both = other_machine_coverage(rows);
  ASSERT_EQ(both.size(), 1U);
  EXPECT_EQ(both.front().rows, 2000U);
  EXPECT_NEAR(both.front().share(), (0.42 + 1) / 2, 0.04);
  // Figures of others are no machine of ours.
  for (Residual& r : rows)
    if (r.gpu == "other") r.standing = Standing::uncalibrated;
  EXPECT_TRUE(other_machine_coverage(rows).empty());
}

// What another measured GPU says of a class counts, where the fitted one says little of it.
TEST(BandFit, RowsOfAllMeasuredGpusMakeClasses) {
  std::vector<Residual> rows = normal_rows(Standing::fitted, 0.1, 3);
  std::vector<Residual> narrow = normal_rows(Standing::checked, 0.02, 8);
  for (Residual& r : narrow) r.work.kernels = "scans";
  rows.insert(rows.end(), narrow.begin(), narrow.end());
  const BandTable table = fit_bands(rows);
  const WorkClass of = narrow.front().work;
  EXPECT_NEAR(std::log(table.of(of, Standing::fitted, narrow.front().predicted).high), 1.645 * 0.02,
              0.004);  // the 95th of 100 of normal errors
  // Of published figures there is no class, so that the wider ones count.
  for (Residual& r : rows)
    if (r.standing == Standing::checked) r.standing = Standing::uncalibrated;
  EXPECT_GT(std::log(fit_bands(rows).of(of, Standing::fitted, narrow.front().predicted).high),
            1.645 * 0.1);
}

// Not widened, bands of half the errors hold 90 % of them seldom: 59 % lie within 1.645 / 2 sigma.
TEST(BandFit, SaysHowBandsHoldThatAreNotWidened) {
  std::vector<Residual> rows = normal_rows(Standing::fitted, 0.05, 1);
  EXPECT_TRUE(not_widened_coverage(rows).empty());
  for (const Residual& r : normal_rows(Standing::uncalibrated, 0.1, 2)) rows.push_back(r);
  const auto coverage = not_widened_coverage(rows);
  ASSERT_EQ(coverage.size(), 1U);
  EXPECT_EQ(coverage.front().rows, 1000U);
  EXPECT_NEAR(coverage.front().share(), 0.59, 0.06);
}

// Normal errors of 2 % and, of work with a trait, of 8 %: bands of one width for both hold 90 % of
// all, but are four times too wide for half of the work.
TEST(BandFit, BandsAreAsWideAsTheTraitsOfTheWorkSay) {
  std::vector<Residual> rows = normal_rows(Standing::fitted, 0.02, 11);
  for (Residual& r : rows) r.work.traits = {std::log(0.5), 1, 0, 0.1};
  for (Residual r : normal_rows(Standing::fitted, 0.08, 12)) {
    r.work.traits = {std::log(0.5), 1, 0, 0.6};
    rows.push_back(r);
  }
  const BandTable table = fit_bands(rows);
  ASSERT_EQ(table.spreads().size(), 1U);  // traits that are alike in all rows say nothing
  EXPECT_EQ(table.spreads().front().trait, "others");
  // ln 4 over a difference of 0.5; the standard error of a mean of 1,000 is 2.4 % of it.
  EXPECT_NEAR(table.spreads().front().slope, std::log(4.0) / 0.5, 0.25);
  EXPECT_NEAR(std::log(band_of(table, rows.front()).high), 1.645 * 0.02, 0.004);
  EXPECT_NEAR(std::log(band_of(table, rows.back()).high), 1.645 * 0.08, 0.016);
  const Coverage with = left_out_coverage(rows).front();
  EXPECT_NEAR(with.share(), 0.9, 0.03);
  for (Residual& r : rows) r.work.traits.clear();
  const Coverage without = left_out_coverage(rows).front();
  EXPECT_NEAR(without.share(), 0.9, 0.03);
  EXPECT_LT(with.score, 0.9 * without.score);
}

TEST(BandRows, KnowTheirGpu) {
  const auto rows = band_rows({(data_dir() / "measurements" / "h200-open-train").string()});
  ASSERT_FALSE(rows.empty());
  for (const Residual& r : rows) EXPECT_EQ(r.gpu, "h200") << r.work.what;
}

double widening_of(const std::vector<Residual>& rows) {
  const BandTable table = fit_bands(rows);
  const Residual& r = rows.front();
  return std::log(table.of(r.work, Standing::uncalibrated, r.predicted).high) /
         std::log(table.of(r.work, Standing::fitted, r.predicted).high);
}

TEST(BandFit, WidensForGpusWithLargerErrors) {
  std::vector<Residual> rows = normal_rows(Standing::fitted, 0.05, 1);
  int i = 0;
  for (Residual r : normal_rows(Standing::uncalibrated, 0.15, 2)) {
    r.gpu = "gpu " + std::to_string(i++ % 20);
    rows.push_back(r);
  }
  // Student's 95th percentile of 20 degrees is 5 % more than that of the normal distribution.
  EXPECT_NEAR(widening_of(rows), 3 * 1.05, 0.5);
}

// GPUs that nobody measured are draws among machines, and the next is one more. Where their errors
// are no larger than those of measured GPUs, few of them still say less.
TEST(BandFit, AFewGpusThatErrNoMoreStillWiden) {
  std::vector<Residual> rows = normal_rows(Standing::fitted, 0.05, 1);
  const auto add = [&rows](int gpus) {
    std::vector<Residual> all = rows;
    int i = 0;
    for (Residual r : normal_rows(Standing::uncalibrated, 0.05, 2)) {
      r.gpu = "gpu " + std::to_string(i++ % gpus);
      all.push_back(r);
    }
    return all;
  };
  const double of_four = widening_of(add(4));
  EXPECT_NEAR(of_four, 2.13 / 1.645, 0.15);
  EXPECT_GT(of_four, widening_of(add(40)) + 0.15);
  EXPECT_EQ(fit_bands(add(4)).widenings().front().machines, 4);
  // The bands of a measured GPU stay as they are.
  const Residual& r = rows.front();
  EXPECT_EQ(fit_bands(add(4)).of(r.work, Standing::fitted, r.predicted).high,
            fit_bands(rows).of(r.work, Standing::fitted, r.predicted).high);
}

TEST(BandFit, FewRowsAreWiderThanManyOfTheSameSpread) {
  std::vector<Residual> rows = normal_rows(Standing::fitted, 0.02, 3);
  WorkClass few = rows.front().work;
  few.kernels = "scans";
  for (int i = 0; i < 6; ++i) {
    rows.push_back(row(100 + i, i % 2 == 0 ? 0.02 : -0.02));
    rows.back().work = few;
  }
  const BandTable table = fit_bands(rows);
  const Band of_few = table.of(few, Standing::fitted, rows.front().predicted);
  const Band of_many = table.of(rows.front().work, Standing::fitted, rows.front().predicted);
  EXPECT_GT(of_few.high, of_many.high);
  EXPECT_LT(of_few.low, of_many.low);
}

// The errors of `models` models are spread like normal ones, and each model's rows err alike but
// for a hundredth of the spread.
std::vector<Residual> rows_alike(int models) {
  std::mt19937 random(11);
  std::normal_distribution<double> noise(0, 0.001);
  std::vector<Residual> rows;
  for (int i = 0; i < 1000; ++i) {
    const int model = i % models;
    // Spread evenly over the ranks of a logistic distribution, close to the normal one.
    const double rank = (model + 0.5) / models;
    const double error = 0.1 * std::log(rank / (1 - rank)) * std::sqrt(3.0) / std::numbers::pi;
    rows.push_back(row(model, error + noise(random)));
  }
  return rows;
}

// Rows of one model err alike: 1,000 of 4 models say less than 1,000 of 40.
TEST(BandFit, FewModelsAreWiderThanManyOfTheSameSpread) {
  const std::vector<Residual> many = rows_alike(40), few = rows_alike(4);
  const Band of_many = band_of(fit_bands(many), many.front());
  const Band of_few = band_of(fit_bands(few), few.front());
  // The outermost of 4 lies at 0.65 of the 95th of 100. Student's factor for 4 rows is 1.43,
  // and 1.12 for a row more: together 1.04 times as wide at least.
  EXPECT_GT(std::log(of_few.high), 1.04 * std::log(of_many.high));
  EXPECT_LT(std::log(of_few.low), 1.04 * std::log(of_many.low));
}

// Where rows of a model err no more alike than others, their number counts.
TEST(BandFit, ModelsWhoseRowsErrApartSayAsMuchAsMoreModels) {
  const std::vector<Residual> many = normal_rows(Standing::fitted, 0.1, 7);
  std::vector<Residual> few = many;
  for (std::size_t i = 0; i < few.size(); ++i) few[i].model = "model " + std::to_string(i % 4);
  const double of_many = std::log(band_of(fit_bands(many), many.front()).high);
  const double of_few = std::log(band_of(fit_bands(few), few.front()).high);
  EXPECT_NEAR(of_few / of_many, 1, 0.1);
}

// A class of small errors is narrower than the others of its phase, and both hold their share.
TEST(BandFit, ClassesOfSmallErrorsAreNarrow) {
  std::vector<Residual> rows = normal_rows(Standing::fitted, 0.1, 7);
  for (Residual& r : normal_rows(Standing::fitted, 0.02, 8)) {
    r.work.kernels = "scans";
    rows.push_back(r);
  }
  const BandTable table = fit_bands(rows);
  const double wide = std::log(band_of(table, rows.front()).high);
  const double narrow = std::log(band_of(table, rows.back()).high);
  EXPECT_NEAR(wide / narrow, 5, 0.5);
  EXPECT_NEAR(narrow, 1.645 * 0.02, 0.003);  // the 95th of 100 of normal errors
}

// The table knows the sizes of its rows, and is wider beyond them.
TEST(BandFit, IsWiderBeyondTheSizesOfItsRows) {
  std::vector<Residual> rows = normal_rows(Standing::fitted, 0.1, 7);
  for (Residual& r : rows) r.work.what = "hbm";
  const BandTable table = fit_bands(rows);
  const Band within = table.of(rows.front().work, Standing::fitted, 1e-3);
  const Band beyond = table.of(rows.front().work, Standing::fitted, 2e-3);
  EXPECT_NEAR(std::log(beyond.high) / std::log(within.high), 1 + 2 * std::log(2), 1e-9);
}

TEST(BandFit, GainsOfTwoPlansCancelWhatTheyShare) {
  // Both plans take 20 % longer than predicted; only their ratio is judged.
  Residual slow = row(1, std::log(1.2)), fast = row(1, std::log(1.2));
  slow.predicted *= 1.5;
  slow.measured *= 1.5;
  const auto gains = gains_of({fast, slow});
  ASSERT_EQ(gains.size(), 1U);
  EXPECT_EQ(gains.front().work.what, "gain");
  EXPECT_NEAR(gains.front().predicted, 1.5, 1e-12);
  EXPECT_NEAR(gains.front().measured, 1.5, 1e-12);
}

TEST(BandFit, FindsASlopeBelowOne) {
  std::mt19937 random(5);
  std::normal_distribution<double> error(0, 0.002);
  std::vector<Residual> rows;
  for (int i = 0; i < 400; ++i) {
    Residual r = row(i % 20, 0);
    r.work.what = "gain";
    const double predicted = 0.02 + 0.0002 * i;
    r.predicted = std::exp(predicted);
    r.measured = std::exp(0.6 * predicted + error(random));
    rows.push_back(r);
  }
  const BandTable table = fit_bands(rows);
  for (const BandClass& c : table.classes()) EXPECT_NEAR(c.slope, 0.6, 0.01);
}

TEST(BandFit, TheScoreCountsWidthAndWhatLiesOutside) {
  const auto coverage = coverage_of({row(1, 0), row(2, std::log(1.3))},
                                    [](const Residual&) { return Band{.low = 0.9, .high = 1.1}; });
  ASSERT_EQ(coverage.size(), 1U);
  EXPECT_EQ(coverage.front().held, 1U);
  EXPECT_NEAR(coverage.front().half_width, 0.1, 1e-12);
  // Width 0.2 twice; 20 times 0.2 outside, once.
  EXPECT_NEAR(coverage.front().score, (0.2 + 0.2 + 20 * 0.2) / 2, 1e-9);
}

}  // namespace
}  // namespace fuseline
