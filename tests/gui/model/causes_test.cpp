#include "gui/model/causes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "gui/model/edge_preview.h"
#include "tests/gui/model/gui_support.h"

namespace fuseline::gui {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

Causes causes_of_first(const Document& d) {
  ResultCache cache;
  const Results results = compute(d, cache);
  return causes_of(d, results.runs[0], cache);
}

TEST(Causes, AreInOrderOfTheTimeThatTheirChangeRecovers) {
  const Causes causes = causes_of_first(test::small_document({"eager"}));
  ASSERT_GE(causes.causes.size(), 3U);
  EXPECT_THAT(causes.title, HasSubstr("Why eager takes "));
  for (std::size_t i = 1; i < causes.causes.size(); ++i)
    EXPECT_GE(causes.causes[i - 1].recovers, causes.causes[i].recovers);
  EXPECT_EQ(causes.causes.back().kind, CauseKind::limit);
  EXPECT_LT(causes.bound, causes.time);
  EXPECT_EQ(unlike_in(to_table(causes)), "");
}

TEST(Causes, SayWhatTheChangeDoesWhenItIsMade) {
  const Document d = test::small_document({"eager"});
  ResultCache cache;
  const Results results = compute(d, cache);
  int edges = 0, policies = 0;
  for (const Cause& cause : causes_of(d, results.runs[0], cache).causes) {
    if (cause.fuse) {
      const EdgePreview preview = preview_edge(d, results.runs[0], *cause.fuse, cache);
      EXPECT_TRUE(preview.legal);
      EXPECT_EQ(preview.saving.time, cause.recovers);
      ++edges;
    } else if (cause.policy) {
      const auto other = result_of(d, {.policy = *cause.policy}, cache);
      EXPECT_EQ(results.runs[0].result->totals.time - other->totals.time, cause.recovers);
      EXPECT_GT(cause.recovers, Seconds());
      ++policies;
    }
  }
  EXPECT_GE(edges, 1);
  EXPECT_GE(policies, 1);
}

TEST(Causes, AMeasuredRunIsExplainedByItsPrediction) {
  const Document d = default_document();
  ResultCache cache;
  const Results results = compute(d, cache);
  ASSERT_TRUE(results.runs[1].run.is_measurement());
  const Causes causes = causes_of(d, results.runs[1], cache);
  EXPECT_THAT(causes.problem, HasSubstr("choose its prediction"));
  EXPECT_TRUE(causes.causes.empty());
}

TEST(Causes, StopWhenTheyAreAskedTo) {
  const Document d = test::small_document({"eager"});
  ResultCache cache;
  const Results results = compute(d, cache);
  std::stop_source stop;
  stop.request_stop();
  EXPECT_THROW(static_cast<void>(causes_of(d, results.runs[0], cache, stop.get_token())),
               Cancelled);
}

}  // namespace
}  // namespace fuseline::gui
