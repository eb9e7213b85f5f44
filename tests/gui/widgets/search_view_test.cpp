// The search's picture: what it says of the edits that could come next is never cut.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <QLabel>

#include "gui/widgets/search_canvas.h"
#include "gui/widgets/search_view.h"
#include "tests/gui/widgets/window_support.h"

namespace fuseline::gui {
namespace {

SearchState two_points() {
  SearchWatch watch;
  watch.begin({});
  watch.tried(Seconds(1.2e-3), Bytes(1'900'000'000));
  watch.tried(Seconds(1.1e-3), Bytes(1'200'000'000));
  return watch.state();
}

std::vector<NextEdit> long_edits() {
  std::vector<NextEdit> next;
  for (int i = 0; i < 4; ++i)
    next.push_back({.edge = {"finish_norm2", "gate_up_scale"},
                    .time = Seconds(1.11e-3),
                    .hbm = Bytes(1'250'000'000),
                    .text = "Split finish_norm2 → gate_up_scale: HBM traffic −42.5 MB (−3.9 %)",
                    .caption = "Split finish_norm2 → gate_up_scale −12.1 µs −42.5 MB"});
  return next;
}

TEST(SearchCanvas, CaptionsAreWholeAtEveryWidth) {
  test::application();
  SearchCanvas canvas(nullptr);
  canvas.show_state(two_points(), long_edits());
  const QFont font = small_font(canvas.font());
  for (const int width : {200, 300, 400, 700}) {
    const QRectF plot(40, 10, width, 240);
    const auto captions = canvas.captions(plot, font);
    ASSERT_FALSE(captions.empty()) << width;
    QRectF before;
    for (const SearchCanvas::Caption& c : captions) {
      EXPECT_TRUE(c.text.endsWith("−42.5 MB")) << "not elided";
      EXPECT_GE(c.box.left(), plot.left()) << width;
      EXPECT_LE(c.box.right(), plot.right()) << width;
      EXPECT_LE(c.box.bottom(), plot.bottom()) << width;
      EXPECT_FALSE(before.intersects(c.box)) << width;
      before = c.box;
    }
  }
}

// Without a plan the picture says what to do, and nothing else says it again.
TEST(SearchView, SaysItsSentenceOnce) {
  test::Window window;
  auto& view = *qobject_cast<SearchView*>(window->view("search"));
  const auto& head = *view.findChild<QLabel*>("search-text");
  const auto& canvas = *view.findChild<SearchCanvas*>("search-canvas");
  EXPECT_THAT(canvas.state().text, ::testing::HasSubstr("press Best fusion"));
  EXPECT_EQ(canvas.accessibleDescription().toStdString(), canvas.state().text);
  EXPECT_TRUE(head.text().isEmpty()) << head.text().toStdString();
  auto watch = std::make_shared<SearchWatch>();
  watch->begin({});
  watch->tried(Seconds(1.2e-3), Bytes(1'900'000'000));
  view.follow(watch, {});
  EXPECT_THAT(head.text().toStdString(), ::testing::HasSubstr("so far"));
  watch->end();
}

}  // namespace
}  // namespace fuseline::gui
