// The block graph under real mouse and key events.
#include "gui/widgets/graph_view.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <QPushButton>
#include <QTextBrowser>
#include <QWheelEvent>

#include "gui/widgets/kernel_view.h"
#include "tests/gui/widgets/window_support.h"

namespace fuseline::gui {
namespace {

using test::Window;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::UnorderedElementsAre;

const OnChipEdge kLegalRow{"down", "residual2"};
const OnChipEdge kIllegalRow{"gate_up", "swiglu"};  // its columns are not interleaved

TEST(GraphView, AClickOnAnEdgeFusesAndTheTotalsChange) {
  Window window;
  const RunId policy = window.bench().shown_run();
  const Totals before = window.totals(policy);
  window.click_edge(kLegalRow);
  const RunId edited = window.bench().shown_run();
  ASSERT_NE(edited, policy);
  EXPECT_EQ(window.totals(edited).launches, before.launches - 1);
  EXPECT_LT(window.totals(edited).hbm(), before.hbm());
  EXPECT_LT(window.totals(edited).time, before.time);
  const QString said = window->graph().edit_bar().text();
  EXPECT_THAT(said.toStdString(), HasSubstr("HBM traffic −"));
  EXPECT_TRUE(window->graph().edit_bar().isVisible());
  EXPECT_TRUE(window.scene().find_edge(kLegalRow)->edge().on_chip);
  // The same edge again splits.
  window.click_edge(kLegalRow);
  EXPECT_FALSE(window.scene().find_edge(kLegalRow)->edge().on_chip);
  EXPECT_EQ(window.totals(window.bench().shown_run()).launches, before.launches);
}

TEST(GraphView, NodesKeepTheirPlacesWhileGroupsChange) {
  Window window;
  const QPointF before = window.scene().find_edge(kIllegalRow)->middle();
  const QTransform zoom = window->graph().canvas().transform();
  window.click_edge(kLegalRow);
  EXPECT_EQ(window.scene().find_edge(kIllegalRow)->middle(), before);
  EXPECT_EQ(window->graph().canvas().transform(), zoom);
}

TEST(GraphView, AnIllegalEdgeIsRefusedWithItsReasonAndASuggestionCanBeTaken) {
  Window window;
  const Document before = window.bench().document();
  window.click_edge(kIllegalRow);
  EXPECT_EQ(window.bench().document(), before);
  EditBar& bar = window->graph().edit_bar();
  ASSERT_TRUE(bar.isVisible());
  EXPECT_THAT(bar.text().toStdString(), HasSubstr("interleaved"));
  const auto buttons = bar.findChildren<QPushButton*>("suggestion");
  ASSERT_FALSE(buttons.isEmpty());
  QTest::mouseClick(buttons.front(), Qt::LeftButton);
  window.settle();
  EXPECT_EQ(window.bench().document().runs.all().size(), before.runs.all().size() + 1);
  // What it saves stands apart from what leaving the policy's kernels does.
  EXPECT_THAT(bar.text().toStdString(), HasSubstr("; custom's kernels in place of those of "));
}

TEST(GraphView, UndoAndRedoByKeys) {
  Window window;
  const std::size_t runs = window.bench().document().runs.all().size();
  window.click_edge(kLegalRow);
  ASSERT_EQ(window.bench().document().runs.all().size(), runs + 1);
  window->action("undo")->trigger();
  window.settle();
  EXPECT_EQ(window.bench().document().runs.all().size(), runs);
  EXPECT_FALSE(window.scene().find_edge(kLegalRow)->edge().on_chip);
  window->action("redo")->trigger();
  window.settle();
  EXPECT_EQ(window.bench().document().runs.all().size(), runs + 1);
  EXPECT_FALSE(window->action("redo")->isEnabled());
}

TEST(GraphView, HoveringAnEdgeHighlightsTheKernelsInTheTable) {
  Window window;
  auto* kernels = qobject_cast<KernelView*>(window->view("kernels"));
  ASSERT_NE(kernels, nullptr);
  QWidget* viewport = window->graph().canvas().viewport();
  const auto lit_rows = [&] {
    int lit = 0;
    for (int row = 0; row < kernels->model().rowCount(); ++row) {
      const QModelIndex index = kernels->model().index(row, 1);
      lit += kernels->model().data(index, Qt::BackgroundRole).isValid() ? 1 : 0;
    }
    return lit;
  };
  ASSERT_EQ(lit_rows(), 0);
  test::move_mouse(*viewport, window.pixel_of(*window.scene().find_edge(kLegalRow)));
  EXPECT_EQ(window.bench().selection().hovered, edge_thing(kLegalRow));
  EXPECT_TRUE(window.scene().find_edge(kLegalRow)->is_lit());
  EXPECT_GE(lit_rows(), 1);
  test::move_mouse(*viewport, {2, 2});
  EXPECT_TRUE(window.bench().selection().hovered.is_nothing());
  EXPECT_EQ(lit_rows(), 0);
}

TEST(GraphView, KeysChooseAnEdgeAndToggleIt) {
  Window window;
  GraphCanvas& canvas = window->graph().canvas();
  canvas.setFocus();
  for (int i = 0; i < 60; ++i) {
    QTest::keyClick(&canvas, Qt::Key_Down);
    if (window.scene().chosen()->edge().choice == kLegalRow) break;
  }
  ASSERT_EQ(window.scene().chosen()->edge().choice, kLegalRow);
  EXPECT_EQ(window.bench().selection().selected, edge_thing(kLegalRow));
  QTest::keyClick(&canvas, Qt::Key_Return);
  window.settle();
  EXPECT_TRUE(window.scene().find_edge(kLegalRow)->edge().on_chip);
}

// Drags a lasso along the corners of the area; what was inside.
std::vector<std::string> draw_lasso(Window& window, const QRectF& area) {
  GraphCanvas& canvas = window->graph().canvas();
  const auto at = [&](QPointF p) { return canvas.mapFromScene(p); };
  QPainterPath lasso;
  lasso.addRect(area);
  std::vector<std::string> inside = window.scene().operators_in(lasso);
  QTest::mousePress(canvas.viewport(), Qt::LeftButton, Qt::ShiftModifier, at(area.topLeft()));
  for (const QPointF& p : {area.topRight(), area.bottomRight(), area.bottomLeft()}) {
    test::move_mouse(*canvas.viewport(), at(p), Qt::LeftButton);
  }
  QTest::mouseRelease(canvas.viewport(), Qt::LeftButton, Qt::ShiftModifier, at(area.bottomLeft()));
  window.settle();
  return inside;
}

TEST(GraphView, ALassoFusesWhatIsInside) {
  Window window;
  const std::size_t runs = window.bench().document().runs.all().size();
  // From the middle of the one operator to that of the other.
  const QRectF edge = window.scene().find_edge(kLegalRow)->boundingRect();
  ASSERT_THAT(draw_lasso(window, edge.adjusted(-10, -20, 10, 20)),
              UnorderedElementsAre("down", "residual2"));
  ASSERT_EQ(window.bench().document().runs.all().size(), runs + 1);
  EXPECT_TRUE(window.scene().find_edge(kLegalRow)->edge().on_chip);
  EXPECT_EQ(window.bench().document().runs.at(window.bench().shown_run()).custom.on_chip,
            std::vector<OnChipEdge>{kLegalRow});
  EXPECT_THAT(window->graph().edit_bar().text().toStdString(), HasSubstr("fuse 2 operators"));
}

TEST(GraphView, ALassoAroundOneOperatorSaysThatNothingCanBeJoined) {
  Window window;
  const Document before = window.bench().document();
  const QRectF edge = window.scene().find_edge(kLegalRow)->boundingRect();
  const QRectF upper(edge.left() - 10, edge.top() - 20, edge.width() + 20, 24);
  ASSERT_THAT(draw_lasso(window, upper), ElementsAre("down"));
  EXPECT_EQ(window.bench().document(), before);
  EXPECT_THAT(window->graph().edit_bar().text().toStdString(), HasSubstr("no two"));
}

// What the details strip says, once the preview of the edge is there.
std::string details_of_hovered(Window& window, const OnChipEdge& edge) {
  QWidget* viewport = window->graph().canvas().viewport();
  test::move_mouse(*viewport, window.pixel_of(*window.scene().find_edge(edge)));
  test::wait_until([&] { return window.session().preview(edge) != nullptr; });
  return window->findChild<QTextBrowser*>("details")->toPlainText().toStdString();
}

TEST(GraphView, HoveringAnEdgeSaysWhatAClickWouldSaveAndTheClickDoes) {
  Window window;
  const std::string said = details_of_hovered(window, kLegalRow);
  const EdgePreview preview = *window.session().preview(kLegalRow);
  ASSERT_TRUE(preview.legal);
  EXPECT_THAT(said, HasSubstr("a click"));
  EXPECT_THAT(said, HasSubstr(preview.saving.text));
  EXPECT_THAT(window.scene().find_edge(kLegalRow)->toolTip().toStdString(),
              HasSubstr(preview.saving.text));
  EXPECT_EQ(window.bench().document().runs.all().size(), 2U);  // nothing was done yet
  window.click_edge(kLegalRow);
  EXPECT_THAT(window->graph().edit_bar().text().toStdString(), HasSubstr(preview.saving.text));
}

TEST(GraphView, HoveringAnIllegalEdgeSaysWhy) {
  Window window;
  const std::string said = details_of_hovered(window, kIllegalRow);
  EXPECT_THAT(said, HasSubstr("not possible"));
  EXPECT_THAT(said, HasSubstr("interleaved"));
  EXPECT_THAT(window.scene().find_edge(kIllegalRow)->toolTip().toStdString(),
              HasSubstr("interleaved"));
}

TEST(GraphView, TheWheelZoomsAndZeroFitsAgain) {
  Window window;
  GraphCanvas& canvas = window->graph().canvas();
  const double fitted = canvas.transform().m11();
  const QPoint middle = canvas.viewport()->rect().center();
  QWheelEvent wheel(middle, canvas.viewport()->mapToGlobal(middle), {}, {0, 240}, Qt::NoButton,
                    Qt::NoModifier, Qt::NoScrollPhase, false);
  QCoreApplication::sendEvent(canvas.viewport(), &wheel);
  EXPECT_GT(canvas.transform().m11(), fitted * 1.2);
  QTest::keyClick(&canvas, Qt::Key_0);
  EXPECT_NEAR(canvas.transform().m11(), fitted, 1e-9);
}

TEST(GraphView, ADragMovesThePictureAndTogglesNothing) {
  Window window;
  GraphCanvas& canvas = window->graph().canvas();
  canvas.zoom(3);
  const Document before = window.bench().document();
  const QPointF under = canvas.mapToScene(100, 100);
  test::drag(*canvas.viewport(), {100, 100}, {60, 40});
  EXPECT_EQ(window.bench().document(), before);
  EXPECT_NE(canvas.mapToScene(100, 100), under);
}

TEST(GraphView, WithoutDotItSaysWhatToInstallAndDrawsRows) {
  test::application();
  QTemporaryDir folder;
  Session session(test::window_document({"coda"}), folder.path().toStdString());
  GraphView view(session, nullptr, "no-such-dot");
  view.resize(600, 700);
  view.show();
  session.wait();
  view.refresh();
  view.finish();
  EXPECT_TRUE(view.edit_bar().isVisible());
  EXPECT_THAT(view.edit_bar().text().toStdString(), HasSubstr("graphviz"));
  EXPECT_FALSE(view.canvas().graph().picture().isEmpty());
  EXPECT_NE(view.canvas().graph().find_edge({"swiglu", "down"}), nullptr);
}

}  // namespace
}  // namespace fuseline::gui
