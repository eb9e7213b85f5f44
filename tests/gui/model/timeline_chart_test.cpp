#include "gui/model/timeline_chart.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/gui/model/gui_support.h"

namespace fuseline::gui {
namespace {

using ::testing::HasSubstr;

// The figure beside measured bars is the block replayed as one; kernels are timed one by one.
TEST(TimelineChart, SaysWhyMeasuredBarsDoNotAddUpToTheFigureBesideThem) {
  const TimelineChart chart = timeline_chart(test::results_of(default_document()), Align::start);
  int said = 0;
  for (const TimelineRow& row : chart.rows) {
    if (!row.measured) {
      EXPECT_EQ(row.sums_up, "");
      continue;
    }
    Seconds sum;
    for (const TimelineBar& bar : row.bars) sum += bar.length;
    EXPECT_NEAR(to_us(sum + row.unattributed), to_us(row.total), 1e-6);
    if (std::abs(row.unattributed / row.total) < 0.002) continue;
    ++said;
    EXPECT_THAT(row.sums_up, HasSubstr(row.label));
    EXPECT_THAT(row.sums_up, HasSubstr("replayed as one graph"));
  }
  EXPECT_GE(said, 2);
}

// Our own traces have each kernel's time in the graph, which no counter slows down.
TEST(TimelineChart, MeasuredBarsAreTimesInTheGraphWhereThatWasRecorded) {
  const Results results = test::results_of(default_document());
  const RunView& coda = results.runs.back();
  ASSERT_TRUE(coda.run.is_measurement());
  ASSERT_TRUE(coda.result->measured_trace);
  const MeasuredKernel& first = coda.result->measured_trace->kernels.front();
  ASSERT_TRUE(first.time_in_graph);
  EXPECT_EQ(coda.result->kernels.front().estimate.time, *first.time_in_graph);
}

}  // namespace
}  // namespace fuseline::gui
