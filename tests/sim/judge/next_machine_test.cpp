#include "sim/judge/next_machine.h"

#include <cmath>
#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace fuseline {
namespace {

RowReach row(int gpu, double reach, const std::string& source = "a source") {
  return {.gpu = "gpu " + std::to_string(gpu), .source = source, .reach = reach};
}

TEST(NextMachine, ARowsReachIsOverItsBandsEndOnThatSide) {
  const Band band{.low = 0.5, .high = 1.1};
  Residual r;
  r.gpu = "h200";
  r.model = "a source";
  r.predicted = 2;
  r.measured = 2 * 1.21;
  EXPECT_NEAR(reach_of(band, r).reach, 2, 1e-12);
  r.measured = 1;
  EXPECT_NEAR(reach_of(band, r).reach, 1, 1e-12);
  r.measured = 2;
  EXPECT_EQ(reach_of(band, r).reach, 0);
  EXPECT_EQ(reach_of(band, r).gpu, "h200");
  EXPECT_EQ(reach_of(band, r).source, "a source");
  // A band that ends on its estimate reaches no row on that side, however far it is widened.
  r.measured = 2.1;
  EXPECT_GT(reach_of({.low = 0.5, .high = 1}, r).reach, 100);
}

TEST(NextMachine, IsNoNarrowerThanAMeasuredOne) {
  EXPECT_EQ(widening_of_next({}), 1);
  EXPECT_EQ(widening_of_next(machines_of({row(1, 100)})), 5) << "beyond it a band says nothing";
  EXPECT_EQ(widening_of_next(machines_of({row(1, 0.1), row(2, 0.2), row(3, 0.1)})), 1);
}

// A hundred rows of one machine say no more than one row of each other machine.
TEST(NextMachine, MachinesWeighTheSameWhateverTheirRows) {
  std::vector<RowReach> few = {row(1, 0.5), row(2, 1.5), row(3, 1.5), row(4, 1.5)};
  std::vector<RowReach> many = few;
  for (int i = 0; i < 99; ++i) many.push_back(row(1, 0.5));
  const double wide = widening_of_next(machines_of(few));
  EXPECT_NEAR(widening_of_next(machines_of(many)), wide, 1e-9);
  // Student's 95th percentile of four degrees is 2.132; the expansion is 1 % smaller.
  EXPECT_NEAR(wide, 2.132 * std::sqrt((0.25 + 3 * 2.25) / 4), 0.02 * wide);
}

TEST(NextMachine, SourcesOfAMachineWeighTheSame) {
  std::vector<RowReach> rows = {row(1, 3, "one figure")};
  for (int i = 0; i < 19; ++i) rows.push_back(row(1, 1, "a long list"));
  const std::vector<MachineReach> machines = machines_of(rows);
  ASSERT_EQ(machines.size(), 1U);
  EXPECT_EQ(machines.front().sources, 2U);
  EXPECT_EQ(machines.front().rows, 20U);
  EXPECT_NEAR(machines.front().mean_square, (9 + 1) / 2.0, 1e-12);
  EXPECT_EQ(machines.front().widening, 3) << "half of what is said of it lies at 3";
}

// The same errors of fewer machines say less.
TEST(NextMachine, FewMachinesWidenMoreThanMany) {
  double last = 100;
  for (const int machines : {1, 2, 3, 5, 10, 100}) {
    std::vector<RowReach> rows;
    for (int i = 0; i < machines; ++i) rows.push_back(row(i, 0.7));
    const double wide = widening_of_next(machines_of(rows));
    EXPECT_LT(wide, last) << machines;
    last = wide;
  }
  EXPECT_NEAR(last, 0.7 * 1.66, 0.01);
}

// A machine errs by 0.8 of a band's ends (one standard deviation), and its rows by a quarter of
// that around it. What five machines say holds nine of ten rows of a sixth, over many draws of all
// six. What holds nine of ten of the five machines' own rows holds fewer of the sixth's.
TEST(NextMachine, HoldsNineOfTenRowsOfMachinesThatNobodySaw) {
  std::mt19937 random(3);
  std::normal_distribution<double> machine(0, 0.8), within(0, 0.2);
  constexpr int kDraws = 4000, kMachines = 5, kRows = 8;
  int held = 0, by_rows = 0;
  for (int draw = 0; draw < kDraws; ++draw) {
    std::vector<RowReach> rows;
    for (int m = 0; m <= kMachines; ++m) {
      const double error = machine(random);
      for (int i = 0; i < kRows; ++i) rows.push_back(row(m, std::abs(error + within(random))));
    }
    // The last machine of the list is the one that nobody saw.
    const LeftOutMachine left = left_out_machines("time", rows).back();
    ASSERT_EQ(left.others, std::size_t{kMachines});
    held += static_cast<int>(std::lround(left.held_by_machines * kRows));
    by_rows += static_cast<int>(std::lround(left.held_by_rows * kRows));
  }
  constexpr double kAll = kDraws * kRows;
  // The share's standard error is below 0.005: the rows of a machine go together.
  EXPECT_NEAR(held / kAll, 0.9, 0.02);
  EXPECT_LT(by_rows / kAll, 0.87);
}

}  // namespace
}  // namespace fuseline
