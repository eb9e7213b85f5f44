// Operators carried between kernels, under real mouse and key events.
#include "gui/widgets/operator_drag.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <QLabel>
#include <QPushButton>
#include <algorithm>

#include "tests/gui/widgets/window_support.h"

namespace fuseline::gui {
namespace {

using test::Window;
using ::testing::HasSubstr;
using ::testing::StartsWith;

QPoint place_of(Window& window, const std::string& op) {
  return window->graph().canvas().mapFromScene(window.scene().operator_place(op).center());
}

// Pressed on one operator and moved to a place, in steps as a hand does it; not dropped yet.
void carry_to(Window& window, const std::string& op, QPoint to) {
  QWidget* viewport = window->graph().canvas().viewport();
  const QPoint from = place_of(window, op);
  QTest::mousePress(viewport, Qt::LeftButton, {}, from);
  for (const double part : {0.2, 0.6, 1.0})
    test::move_mouse(*viewport, from + (to - from) * part, Qt::LeftButton);
  window->graph().drag().finish();
}

void drop(Window& window, QPoint at) {
  QTest::mouseRelease(window->graph().canvas().viewport(), Qt::LeftButton, {}, at);
  window.settle();
}

const DropItem* frame_around(Window& window, const std::string& op) {
  const MoveTargets& targets = window->graph().drag().targets();
  for (const DropItem* item : window.scene().drop_items()) {
    const auto& there = targets.targets[item->target()].operators;
    if (std::ranges::find(there, op) != there.end()) return item;
  }
  return nullptr;
}

TEST(OperatorDrag, WhileAnOperatorIsCarriedKernelsAreGreenOrRedWithWhatTheySave) {
  Window window;
  const Document before = window.bench().document();
  const QPoint to = place_of(window, "down");
  carry_to(window, "residual2", to);
  OperatorDrag& drag = window->graph().drag();
  ASSERT_TRUE(drag.is_active());
  ASSERT_NE(frame_around(window, "down"), nullptr);
  EXPECT_EQ(frame_around(window, "down")->role().role, ColourRole::allowed);
  ASSERT_NE(frame_around(window, "qkv"), nullptr);
  EXPECT_EQ(frame_around(window, "qkv")->role().role, ColourRole::refused);
  ASSERT_NE(drag.aim(), nullptr);
  EXPECT_THAT(drag.aim()->label, StartsWith("−"));
  EXPECT_THAT(drag.text().toStdString(), HasSubstr("HBM traffic −"));
  EXPECT_EQ(window.bench().document(), before) << "nothing is edited before it is dropped";
  // The graph stays where it is.
  EXPECT_EQ(place_of(window, "down"), to);
  drop(window, to);
  EXPECT_FALSE(drag.is_active());
  EXPECT_TRUE(window.scene().drop_items().empty());
  EXPECT_TRUE(window.scene().find_edge({"down", "residual2"})->edge().on_chip);
  EXPECT_THAT(window->graph().edit_bar().text().toStdString(),
              StartsWith("move residual2 to down: HBM traffic −"));
  window->action("undo")->trigger();
  window.settle();
  EXPECT_EQ(window.bench().document(), before);
}

TEST(OperatorDrag, DroppedOnNothingItGetsAKernelOfItsOwn) {
  Window window;
  window.click_edge({"down", "residual2"});
  ASSERT_TRUE(window.scene().find_edge({"down", "residual2"})->edge().on_chip);
  const QPoint nothing(4, window->graph().canvas().viewport()->height() / 2);
  ASSERT_TRUE(window.scene().kernel_at(window->graph().canvas().mapToScene(nothing)).empty());
  carry_to(window, "residual2", nothing);
  ASSERT_NE(window->graph().drag().aim(), nullptr);
  EXPECT_THAT(window->graph().drag().text().toStdString(), HasSubstr("Pull residual2 out"));
  drop(window, nothing);
  EXPECT_FALSE(window.scene().find_edge({"down", "residual2"})->edge().on_chip);
}

TEST(OperatorDrag, DroppedOnARedKernelItIsRefusedWithTheReasonAndSuggestions) {
  Window window;
  const Document before = window.bench().document();
  const QPoint to = place_of(window, "gate_up");
  carry_to(window, "swiglu", to);
  EXPECT_EQ(frame_around(window, "gate_up")->role().role, ColourRole::refused);
  EXPECT_THAT(window->graph().drag().text().toStdString(), HasSubstr("not possible"));
  drop(window, to);
  EXPECT_EQ(window.bench().document(), before);
  const EditBar& bar = window->graph().edit_bar();
  EXPECT_THAT(bar.text().toStdString(), HasSubstr("interleaved"));
  EXPECT_FALSE(bar.findChildren<QPushButton*>("suggestion").isEmpty());
}

TEST(OperatorDrag, EscPutsItBack) {
  Window window;
  const Document before = window.bench().document();
  const QPoint to = place_of(window, "down");
  carry_to(window, "residual2", to);
  QTest::keyClick(&window->graph().canvas(), Qt::Key_Escape);
  EXPECT_FALSE(window->graph().drag().is_active());
  drop(window, to);
  EXPECT_EQ(window.bench().document(), before);
}

TEST(OperatorDrag, BesideTheOperatorsADragMovesTheGraph) {
  Window window;
  GraphCanvas& canvas = window->graph().canvas();
  canvas.zoom(3);
  const QPointF before = canvas.mapToScene(QPoint(0, 0));
  QPoint empty(2, 2);
  ASSERT_EQ(window.scene().operator_at(canvas.mapToScene(empty)), "");
  QTest::mousePress(canvas.viewport(), Qt::LeftButton, {}, empty);
  test::move_mouse(*canvas.viewport(), {60, 80}, Qt::LeftButton);
  QTest::mouseRelease(canvas.viewport(), Qt::LeftButton, {}, {60, 80});
  EXPECT_FALSE(window->graph().drag().is_active());
  EXPECT_NE(canvas.mapToScene(QPoint(0, 0)), before);
}

TEST(OperatorDrag, ByKeys) {
  Window window;
  GraphCanvas& canvas = window->graph().canvas();
  canvas.setFocus();
  for (int i = 0; i < 60; ++i) {
    QTest::keyClick(&canvas, Qt::Key_Down, Qt::ControlModifier);
    if (window.bench().selection().selected == op_thing("residual2")) break;
  }
  ASSERT_EQ(window.bench().selection().selected, op_thing("residual2"));
  QTest::keyClick(&canvas, Qt::Key_M);
  OperatorDrag& drag = window->graph().drag();
  drag.finish();
  ASSERT_TRUE(drag.is_active());
  for (int i = 0; i < 20; ++i) {
    ASSERT_NE(drag.aim(), nullptr);
    if (drag.aim()->beside == "down") break;
    QTest::keyClick(&canvas, Qt::Key_Right);
  }
  EXPECT_EQ(drag.aim()->beside, "down");
  EXPECT_EQ(canvas.accessibleDescription(), QString::fromStdString(drag.aim()->text));
  QTest::keyClick(&canvas, Qt::Key_Return);
  window.settle();
  EXPECT_TRUE(window.scene().find_edge({"down", "residual2"})->edge().on_chip);
}

// A measured run cannot be edited: there a drag moves the graph, as ever.
TEST(OperatorDrag, OperatorsOfAMeasuredRunStay) {
  Window window(default_document());
  for (const gui::Run& run : window.bench().document().runs.all())
    if (run.is_measurement()) window.session().show_run(run.id);
  window.settle();
  ASSERT_TRUE(window.bench().document().runs.at(window.bench().shown_run()).is_measurement());
  carry_to(window, "residual2", place_of(window, "down"));
  EXPECT_FALSE(window->graph().drag().is_active());
  drop(window, {10, 10});
}

}  // namespace
}  // namespace fuseline::gui
