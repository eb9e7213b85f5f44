// A search while it runs: points, the front, the next edits.
#include "gui/model/search_watch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "gui/model/best_fusion.h"
#include "gui/model/text.h"
#include "tests/gui/model/gui_support.h"

namespace fuseline::gui {
namespace {

TEST(SearchWatch, KeepsTheFrontOfTimeAndBytes) {
  SearchWatch watch;
  watch.begin({});
  std::mt19937 random(5);
  std::vector<std::pair<double, std::int64_t>> all;
  for (int i = 0; i < 500; ++i) {
    all.emplace_back(1 + random() % 40, 1 + static_cast<std::int64_t>(random() % 40));
    watch.tried(Seconds(all.back().first), Bytes(all.back().second));
  }
  const SearchState state = watch.state();
  EXPECT_EQ(state.tried, 500U);
  ASSERT_TRUE(state.best);
  // By definition: no plan of all that came beats one of the front, and every other one is beaten
  // or equal to one of it.
  const auto beats = [](const auto& a, const auto& b) {
    return a.first <= b.first && a.second <= b.second && a != b;
  };
  std::vector<std::pair<double, std::int64_t>> front;
  for (const std::size_t i : state.front)
    front.emplace_back(state.points[i].time.value(), state.points[i].hbm.value());
  EXPECT_TRUE(std::ranges::is_sorted(front));
  for (const auto& p : all) {
    const bool on_front = std::ranges::find(front, p) != front.end();
    const bool beaten = std::ranges::any_of(all, [&](const auto& o) { return beats(o, p); });
    EXPECT_EQ(on_front, !beaten);
  }
  EXPECT_EQ(state.points[*state.best].time.value(), front.front().first);
}

TEST(SearchWatch, IsFilledByASearchAndEachBestOneIsARun) {
  const Document document = test::small_document({"coda"});
  SearchWatch watch;
  const BestFusion best = best_fusion(document, document.runs.all().front(), 2, {}, {}, &watch);
  ASSERT_EQ(best.problem, "");
  const SearchState state = watch.state();
  EXPECT_GT(state.tried, 10U);
  ASSERT_TRUE(state.best);
  EXPECT_DOUBLE_EQ(state.points[*state.best].time.value(), best.time.value());
  EXPECT_EQ(unlike_in(to_table(state)), "");
  // The run of the last one that was the best has its time, within what custom's kernels differ in.
  const SearchPoint& found = state.points[*state.best];
  ASSERT_TRUE(found.custom);
  EXPECT_EQ(*found.custom, best.custom);
}

TEST(NextEdits, AreTheLegalOnesWithWhatTheySave) {
  const Document document = test::small_document({"per-operator"});
  ResultCache cache;
  const std::vector<NextEdit> next = next_edits({document, document.runs.all().front()}, cache);
  ASSERT_FALSE(next.empty());
  EXPECT_TRUE(std::ranges::is_sorted(next, {}, [](const NextEdit& e) { return e.time.value(); }));
  const auto result = result_of(document, document.runs.all().front(), cache);
  EXPECT_LT(next.front().time, result->predicted->time);  // there is something to be fused
  for (const NextEdit& e : next) {
    EXPECT_NE(e.text, "");
    // What is cut first in a narrow place is in the caption too: time and bytes, with their signs.
    EXPECT_THAT(e.caption,
                ::testing::EndsWith(signed_bytes(
                    e.hbm - (result->predicted->hbm_read + result->predicted->hbm_write))));
    EXPECT_THAT(e.caption, ::testing::HasSubstr(signed_time(e.time - result->predicted->time)));
    EXPECT_LT(e.caption.size(), e.text.size());
  }
}

}  // namespace
}  // namespace fuseline::gui
