#include "gui/model/sureness.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "gui/model/export.h"
#include "gui/model/kernel_table.h"
#include "tests/gui/model/gui_support.h"

namespace fuseline::gui {
namespace {

using ::testing::HasSubstr;

TEST(SurenessOfRuns, PredictionsAndTheirKernelsLieInTheirBands) {
  const Results results = test::results_of(test::small_document({"eager", "coda"}));
  for (const RunView& view : results.runs) {
    const auto ends = sure_figures(view);
    ASSERT_TRUE(ends);
    EXPECT_LT(ends->time_low, view.result->totals.time);
    EXPECT_GT(ends->time_high, view.result->totals.time);
    EXPECT_LE(ends->hbm_low, view.result->totals.hbm());
    EXPECT_GE(ends->hbm_high, view.result->totals.hbm());
    for (const KernelRow& kernel : view.result->kernels) {
      const auto of_kernel = sure_figures(view, kernel);
      ASSERT_TRUE(of_kernel);
      EXPECT_LT(of_kernel->time_low, kernel.estimate.time);
      EXPECT_GT(of_kernel->time_high, kernel.estimate.time);
    }
  }
}

TEST(SurenessOfRuns, GainIsOverTheBaseline) {
  const Results results = test::results_of(test::small_document({"eager", "coda"}));
  const auto gain = sure_gain(results.runs[0], results.runs[1]);
  ASSERT_TRUE(gain);
  EXPECT_EQ(gain->gain, results.runs[0].result->totals.time / results.runs[1].result->totals.time);
  EXPECT_LE(gain->low, gain->gain);
  EXPECT_GE(gain->high, gain->gain);
  const auto same = sure_gain(results.runs[0], results.runs[0]);
  ASSERT_TRUE(same);
  EXPECT_EQ(same->verdict, "the same");
}

TEST(SurenessOfRuns, TablesHaveTheEnds) {
  const Results results = test::results_of(test::small_document({"eager", "coda"}));
  const Table runs = runs_table(results);
  for (const auto& row : runs.rows) ASSERT_EQ(row.size(), runs.columns.size());
  const KernelTable kernels = kernel_table(results, results.runs[1].run.id);
  EXPECT_THAT(kernels.lines.front().cells[4].tooltip, HasSubstr("90 %"));
}

TEST(SurenessOfRuns, ARunWithoutAResultHasNone) {
  EXPECT_FALSE(sure_figures(RunView{}));
  EXPECT_FALSE(sure_gain(RunView{}, RunView{}));
}

}  // namespace
}  // namespace fuseline::gui
