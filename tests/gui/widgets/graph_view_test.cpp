// The block graph under real mouse and key events.
#include "gui/widgets/graph_view.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <QGraphicsItem>
#include <QLabel>
#include <QMenu>
#include <QProgressBar>
#include <QPushButton>
#include <QSignalSpy>
#include <QTextBrowser>
#include <QToolButton>
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

QPoint on_screen(Window& window, const OnChipEdge& edge) {
  return window->graph().canvas().viewport()->mapToGlobal(
      window.pixel_of(*window.scene().find_edge(edge)));
}

// A second click at the same place must not meet another edge.
TEST(GraphView, TheGraphStaysUnderTheMouseWhileTheStripComesAndGoes) {
  Window window;
  const QPoint legal = on_screen(window, kLegalRow), illegal = on_screen(window, kIllegalRow);
  const EditBar& bar = window->graph().edit_bar();
  for (const OnChipEdge& edge : {kIllegalRow, kLegalRow, kLegalRow}) {
    QCursor::setPos(on_screen(window, edge));
    window.click_edge(edge);
    ASSERT_TRUE(bar.isVisible());
    EXPECT_EQ(on_screen(window, kLegalRow), legal);
    EXPECT_EQ(on_screen(window, kIllegalRow), illegal);
    const QPoint mouse = bar.mapFromGlobal(on_screen(window, edge));
    EXPECT_FALSE(bar.rect().contains(mouse)) << edge.from;  // what was clicked is in sight
  }
}

TEST(GraphView, UndoTakesTheStripAway) {
  Window window;
  window.click_edge(kLegalRow);
  ASSERT_TRUE(window->graph().edit_bar().isVisible());
  window->action("undo")->trigger();
  window.settle();
  EXPECT_FALSE(window->graph().edit_bar().isVisible());
  // Also where the edit's savings are still awaited.
  window.session().toggle_edge(kLegalRow);
  window->action("undo")->trigger();
  window.settle();
  EXPECT_FALSE(window->graph().edit_bar().isVisible());
}

TEST(GraphView, AnEditThatCostsHasTheColourOfWorse) {
  Window window;
  const EditBar& bar = window->graph().edit_bar();
  window.click_edge(kLegalRow);
  EXPECT_EQ(bar.stripe().role, ColourRole::better) << bar.text().toStdString();
  window.click_edge(kLegalRow);  // splits again
  EXPECT_EQ(bar.stripe().role, ColourRole::worse) << bar.text().toStdString();
}

TEST(GraphView, ARefusedLassosReasonIsWholeInASmallWindow) {
  Window window(test::window_document(), {900, 600});
  EditBar& bar = window->graph().edit_bar();
  bar.show_notice({false,
                   std::string(60, 'x') + " " + std::string(900, 'y') + " end.",
                   RunId{},
                   {{CustomFusion{}, "one"}, {CustomFusion{}, "two"}},
                   {}});
  QCoreApplication::processEvents();
  const auto* text = bar.findChild<QLabel*>("edit-text");
  EXPECT_GE(text->height(), text->heightForWidth(text->width()));
  EXPECT_TRUE(window->graph().rect().contains(bar.geometry()));
  bar.show_notice({false, "a short reason", RunId{}, {}, {}});
  QCoreApplication::processEvents();
  EXPECT_LT(bar.height(), 60);
  EXPECT_GE(bar.height(), bar.height_for(bar.width()));
}

TEST(GraphView, TheWindowOpensWhereEdgesCanBeFusedAndMarksThem) {
  Window window(default_document(), {1240, 800}, test::Show::as_opened);
  EXPECT_EQ(window.bench().document().runs.at(window.bench().shown_run()).policy, "eager");
  int marked = 0, plain = 0;
  for (const QGraphicsItem* item : window.scene().items()) {
    const auto* edge = dynamic_cast<const EdgeItem*>(item);
    if (edge == nullptr || !edge->edge().can_toggle) continue;
    const std::string tip = edge->toolTip().toStdString();
    if (edge->can_be_fused()) {
      ++marked;
      EXPECT_THAT(tip, HasSubstr("Click: keep on chip"));
    } else {
      ++plain;
      EXPECT_THAT(tip, ::testing::Not(HasSubstr("Click: keep on chip")));
    }
  }
  EXPECT_GE(marked, 3);
  EXPECT_GE(plain, 1);
}

TEST(GraphView, AnEdgeThatCannotBeFusedSaysWhyAndPromisesNothing) {
  Window window;
  const EdgeItem* illegal = window.scene().find_edge(kIllegalRow);
  EXPECT_FALSE(illegal->can_be_fused());
  EXPECT_THAT(illegal->toolTip().toStdString(), HasSubstr("Cannot be kept on chip"));
  EXPECT_THAT(illegal->toolTip().toStdString(), ::testing::Not(HasSubstr("Click:")));
  EXPECT_TRUE(window.scene().find_edge(kLegalRow)->can_be_fused());
  EXPECT_NE(illegal->cursor().shape(), Qt::PointingHandCursor);
}

// The bar of the status line came when another view began or ended work while the graph was laid
// out, and nothing took it away.
TEST(GraphView, SaysWhenItsLayoutIsThere) {
  Window window;
  QSignalSpy busy(&window->graph(), &View::busy_changed);
  gui::Setup setup = window.bench().document().setup;
  setup.model = "mixtral-8x7b";
  window.session().act([&](Workbench& bench) { bench.set_setup(setup, "model"); });
  window.settle();
  EXPECT_GE(busy.count(), 2);
  EXPECT_FALSE(window->graph().is_busy());
  EXPECT_FALSE(window->findChild<QProgressBar*>("progress")->isVisible());
}

// A block with its backward pass: all of it at once is too small to read.
TEST(GraphView, ALargeGraphOpensWhereItCanBeReadAndFitsOnDemand) {
  Document document = test::window_document({"per-operator"});
  document.setup.workload.phase = Phase::train;
  document.runs = runs_for(document.setup, {"per-operator"}, {}, "");
  Window window(document, {900, 600});
  GraphCanvas& canvas = window->graph().canvas();
  EXPECT_GE(canvas.transform().m11(), 0.5);
  const QRectF seen = canvas.mapToScene(canvas.viewport()->rect()).boundingRect();
  EXPECT_TRUE(seen.contains(window.scene().start()));
  QTest::keyClick(&canvas, Qt::Key_0);
  QCoreApplication::processEvents();
  EXPECT_LT(canvas.transform().m11(), 0.5);
  const QRectF all = canvas.mapToScene(canvas.viewport()->rect()).boundingRect();
  EXPECT_TRUE(all.adjusted(-2, -2, 2, 2).contains(window.scene().picture()));
}

TEST(GraphView, RewritesAreInWordsAndThoseThatCanBeChosenComeFirst) {
  Window window;
  auto* button = window->graph().findChild<QToolButton*>("graph-rewrites");
  emit button->menu()->aboutToShow();
  const QList<QAction*> actions = button->menu()->actions();
  ASSERT_FALSE(actions.isEmpty());
  for (const QAction* action : actions) {
    if (action->isSeparator()) continue;
    EXPECT_TRUE(action->isEnabled()) << action->text().toStdString();
    EXPECT_TRUE(action->text().contains(' ')) << action->text().toStdString();
    EXPECT_FALSE(action->text().contains('_')) << action->text().toStdString();
  }
  ASSERT_NE(actions.back()->menu(), nullptr);
  for (const QAction* action : actions.back()->menu()->actions()) EXPECT_FALSE(action->isEnabled());
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
