// Two graphs beside each other: parts closed, both zoomed, a map, from left to right.
#include "gui/widgets/pair_view.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <QLabel>
#include <QScrollBar>
#include <QToolButton>

#include "tests/gui/widgets/window_support.h"

namespace fuseline::gui {
namespace {

using test::Window;

PairView& pair_of(Window& window) {
  window->raise_view("graphs");
  window.settle();
  auto& view = *qobject_cast<PairView*>(window->view("graphs"));
  view.finish();
  return view;
}

void double_click(GraphCanvas& canvas, QPointF at) {
  const QPoint place = canvas.mapFromScene(at);
  QTest::mouseClick(canvas.viewport(), Qt::LeftButton, {}, place);
  QTest::mouseDClick(canvas.viewport(), Qt::LeftButton, {}, place);
}

TEST(PairView, ADoubleClickMakesOneBoxOfAPartInBoth) {
  Window window;
  PairView& view = pair_of(window);
  GraphCanvas& left = view.canvas(0);
  left.ensureVisible(left.graph().operator_place("qkv"));
  double_click(left, left.graph().operator_place("qkv").center());
  view.finish();
  EXPECT_TRUE(view.parts().closed().contains("attention"));
  for (const int side : {0, 1}) {
    EXPECT_TRUE(view.canvas(side).graph().operator_place("qkv").isNull());
    EXPECT_FALSE(view.canvas(side).graph().operator_place("part:attention").isNull());
  }
  double_click(left, left.graph().operator_place("part:attention").center());
  view.finish();
  EXPECT_TRUE(view.parts().closed().empty());
  EXPECT_FALSE(left.graph().operator_place("qkv").isNull());
}

TEST(PairView, BothZoomAlsoWhereAllOfThemIsSeen) {
  Window window;
  PairView& view = pair_of(window);
  view.canvas(0).fit();
  view.canvas(0).zoom(0.5);
  EXPECT_EQ(view.canvas(1).transform(), view.canvas(0).transform());
  view.canvas(1).zoom(6);
  EXPECT_EQ(view.canvas(0).transform(), view.canvas(1).transform());
}

TEST(PairView, TheMapIsThereWhereNotAllIsSeenAndGoesWhereItIsPressed) {
  Window window(test::window_document(), {2400, 1400});  // both graphs have room for one
  PairView& view = pair_of(window);
  GraphCanvas& canvas = view.canvas(0);
  canvas.fit();
  EXPECT_FALSE(view.map(0).isVisible());
  canvas.zoom(4);
  Minimap& map = view.map(0);
  ASSERT_TRUE(map.isVisible());
  QTest::mousePress(&map, Qt::LeftButton, {}, {map.width() / 2, map.height() - 4});
  QTest::mouseRelease(&map, Qt::LeftButton, {}, {map.width() / 2, map.height() - 4});
  EXPECT_EQ(canvas.verticalScrollBar()->value(), canvas.verticalScrollBar()->maximum());
  EXPECT_EQ(view.canvas(1).verticalScrollBar()->value(),
            view.canvas(1).verticalScrollBar()->maximum());
  EXPECT_GT(map.frame().bottom(), map.height() - 12);
  map.setFocus();
  const int before = canvas.verticalScrollBar()->value();
  QTest::keyClick(&map, Qt::Key_Up);
  EXPECT_LT(canvas.verticalScrollBar()->value(), before);
}

TEST(PairView, FromLeftToRight) {
  Window window;
  PairView& view = pair_of(window);
  const auto across = [&] {
    const QRectF area = view.canvas(0).graph().picture();
    return area.width() > area.height();
  };
  ASSERT_FALSE(across());
  QTest::mouseClick(view.findChild<QToolButton*>("pair-landscape"), Qt::LeftButton);
  view.finish();
  EXPECT_TRUE(across());
  const GraphScene& scene = view.canvas(1).graph();
  EXPECT_LT(scene.operator_place("qkv").right(), scene.operator_place("down").left());
}

// The main graph has the same tools.
TEST(PairView, ThePartsOfTheBlockGraphCanBeClosedToo) {
  Window window;
  window->graph().parts().toggle("attention");
  window.settle();
  EXPECT_FALSE(window.scene().operator_place("part:attention").isNull());
  EXPECT_EQ(window.scene().operator_at(window.scene().operator_place("part:attention").center()),
            "")
      << "a box cannot be carried";
  window.click_edge({"down", "residual2"});
  EXPECT_TRUE(window.scene().find_edge({"down", "residual2"})->edge().on_chip);
}

}  // namespace
}  // namespace fuseline::gui
