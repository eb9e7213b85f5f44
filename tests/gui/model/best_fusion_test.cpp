#include "gui/model/best_fusion.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/gui/model/gui_support.h"

namespace fuseline::gui {
namespace {

using ::testing::HasSubstr;

TEST(BestFusion, IsARunOfTheWindowAndNoSlowerThanWhereItStarted) {
  Document d = test::small_document({"eager"});
  const gui::Run run = d.runs.all()[0];
  std::size_t last = 0;
  const BestFusion best = best_fusion(d, run, 1, {}, [&](std::size_t done, std::size_t total) {
    EXPECT_LE(done, total);
    last = done;
  });
  ASSERT_EQ(best.problem, "");
  EXPECT_FALSE(best.custom.on_chip.empty());
  EXPECT_GE(best.time, best.bound);
  EXPECT_THAT(best.text, HasSubstr("plans"));
  const RunId id = d.runs.add({.name = "best", .policy = kCustomPolicy, .custom = best.custom});
  const Results results = test::results_of(d);
  ASSERT_TRUE(results.find(id)->ok()) << results.find(id)->result->problem->text;
  EXPECT_LT(results.find(id)->result->totals.time, results.runs[0].result->totals.time);
}

TEST(BestFusion, IsNotSearchedOfAMeasurementAndStops) {
  const Document d = default_document();
  EXPECT_THAT(best_fusion(d, d.runs.all()[1]).problem, HasSubstr("was measured"));
  std::stop_source stop;
  stop.request_stop();
  EXPECT_THROW(static_cast<void>(best_fusion(d, d.runs.all()[0], 1, stop.get_token())), Cancelled);
}

}  // namespace
}  // namespace fuseline::gui
