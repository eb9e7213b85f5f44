// The whole window under real input events: linked views, files, colours, sizes.
#include "gui/widgets/main_window.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <QAbstractItemModelTester>
#include <QAction>
#include <QComboBox>
#include <QDialog>
#include <QDockWidget>
#include <QLabel>
#include <QLineEdit>
#include <QMimeData>
#include <QSlider>
#include <QSpinBox>
#include <QTabBar>
#include <QTableView>
#include <QTextBrowser>
#include <QToolButton>
#include <QUrl>
#include <fstream>

#include "gui/widgets/kernel_view.h"
#include "gui/widgets/search_box.h"
#include "tests/gui/widgets/window_support.h"

namespace fuseline::gui {
namespace {

using test::Window;
using ::testing::HasSubstr;

QImage graph_picture(Window& window) { return test::picture(window->graph(), {700, 700}); }

TEST(MainWindow, OpensOnPredictedBesideMeasuredAndIsNeverEmpty) {
  Window window(default_document());
  EXPECT_EQ(window->runs().model().rowCount(), 6);
  EXPECT_FALSE(window.scene().picture().isEmpty());
  EXPECT_FALSE(window->runs().model().index(0, RunModel::time).data().toString().isEmpty());
  for (View* view : window->views()) {
    window->raise_view(view->id());
    // What is computed off the window's thread is waited for.
    if (view->is_busy()) {
      view->finish();
      QCoreApplication::processEvents();
    }
    const QImage image = test::picture(*view, {600, 400});
    EXPECT_LT(test::part_of(image, image.pixelColor(0, 0)), 0.995) << view->id().toStdString();
    EXPECT_LT(test::part_of(image, Qt::magenta), 0.001) << view->id().toStdString();
  }
}

TEST(MainWindow, ModelsOfTablesKeepQtsRules) {
  Window window;
  auto* kernels = qobject_cast<KernelView*>(window->view("kernels"));
  using Tester = QAbstractItemModelTester;
  const Tester runs(&window->runs().model(), Tester::FailureReportingMode::Fatal);
  const Tester lines(&kernels->model(), Tester::FailureReportingMode::Fatal);
  const Tester sorted(kernels->table().model(), Tester::FailureReportingMode::Fatal);
  window.click_edge({"down", "residual2"});
  window->action("undo")->trigger();
  window.settle();
  kernels->table().sortByColumn(4, Qt::DescendingOrder);
  const auto* model = kernels->table().model();
  EXPECT_GE(model->index(0, 4).data(Qt::UserRole).toDouble(),
            model->index(1, 4).data(Qt::UserRole).toDouble());
}

TEST(MainWindow, ADoubleClickOnARunMakesItTheBaseline) {
  Window window;
  QTableView& table = window->runs().table();
  const QModelIndex second = window->runs().model().index(1, RunModel::name);
  const QString before = window->runs().model().index(1, RunModel::time_delta).data().toString();
  EXPECT_FALSE(before.isEmpty());
  const QPoint at = table.visualRect(second).center();
  QTest::mouseClick(table.viewport(), Qt::LeftButton, {}, at);
  QTest::mouseDClick(table.viewport(), Qt::LeftButton, {}, at);
  window.settle();
  EXPECT_EQ(window.bench().results().baseline, window.bench().document().runs.all()[1].id);
  EXPECT_TRUE(window->runs().model().index(1, RunModel::time_delta).data().toString().isEmpty());
  EXPECT_FALSE(window->runs().model().index(0, RunModel::time_delta).data().toString().isEmpty());
}

TEST(MainWindow, ARunIsRenamedInItsListAndATakenNameIsRefused) {
  Window window;
  QAbstractItemModel& model = window->runs().model();
  EXPECT_TRUE(model.setData(model.index(0, 0), "first", Qt::EditRole));
  window.settle();
  EXPECT_EQ(window.bench().document().runs.all()[0].name, "first");
  model.setData(model.index(1, 0), "first", Qt::EditRole);
  window.settle();
  EXPECT_THAT(test::take_failure(*window).toStdString(), HasSubstr("first"));
  EXPECT_NE(window.bench().document().runs.all()[1].name, "first");
}

// Renaming fills the list and chooses its row. Within the view's change to another row that freed
// the index which the view went on with.
TEST(MainWindow, ARowThatEndsTheRenamingOfAnotherOneIsChosen) {
  Window window;
  QTableView& table = window->runs().table();
  const QAbstractItemModel& model = window->runs().model();
  table.setCurrentIndex(model.index(0, RunModel::name));
  window.settle();
  table.edit(model.index(0, RunModel::name));
  auto* editor = table.viewport()->findChild<QLineEdit*>();
  ASSERT_NE(editor, nullptr);
  editor->setText("first");
  table.setCurrentIndex(model.index(1, RunModel::name));
  window.settle();
  EXPECT_EQ(window.bench().document().runs.all()[0].name, "first");
  EXPECT_EQ(table.currentIndex().row(), 1);
  EXPECT_EQ(window.bench().shown_run(), window.bench().document().runs.all()[1].id);
}

TEST(MainWindow, ControlsChangeTheSetupAndUndoBringsThemBack) {
  Window window;
  auto* batch = window->findChild<QSpinBox*>("setup-batch");
  ASSERT_NE(batch, nullptr);
  const Seconds before = window.totals(window.bench().shown_run()).time;
  batch->setFocus();
  QTest::keyClick(batch, Qt::Key_Up);
  window.settle();
  EXPECT_EQ(window.bench().document().setup.workload.batch, 2);
  EXPECT_GT(window.totals(window.bench().shown_run()).time, before);
  window->action("undo")->trigger();
  window.settle();
  EXPECT_EQ(batch->value(), 1);
  auto* phase = window->findChild<QComboBox*>("setup-phase");
  auto* context = window->findChild<QSpinBox*>("setup-context");
  EXPECT_FALSE(context->isEnabled());
  phase->setCurrentIndex(phase->findText("decode"));
  emit phase->activated(phase->currentIndex());
  window.settle();
  EXPECT_TRUE(context->isEnabled());
  EXPECT_EQ(window.bench().document().setup.workload.phase, Phase::decode);
}

TEST(MainWindow, LayersAreChosenAndTheirTimeStandsInTheDetails) {
  Window window;
  auto* layers = window->findChild<QSpinBox*>("setup-layers");
  ASSERT_NE(layers, nullptr);
  EXPECT_EQ(layers->value(), 1);
  const RunId run = window.bench().shown_run();
  const Seconds block = window.totals(run).time;
  layers->setFocus();
  QTest::keyClick(layers, Qt::Key_Up);
  window.settle();
  EXPECT_EQ(window.bench().document().layers, std::optional<std::int64_t>(2));
  EXPECT_EQ(window.bench().results().find(run)->result->layers->time, 2.0 * block);
  EXPECT_EQ(window.totals(run).time, block);  // views show one block
  layers->selectAll();
  QTest::keyClicks(layers, "0");
  QTest::keyClick(layers, Qt::Key_Return);
  window.settle();
  EXPECT_EQ(window.bench().document().layers, std::nullopt);
  EXPECT_EQ(layers->text(), "the whole model");
  window.session().select(run_thing(run));
  const std::string details =
      window->findChild<QTextBrowser*>("details")->toPlainText().toStdString();
  EXPECT_THAT(details, HasSubstr("the whole model, 32 layers: "));
  window->action("undo")->trigger();
  EXPECT_EQ(layers->value(), 1);  // both were one gesture
}

TEST(MainWindow, NamesOfRunsAreReadInNarrowWindows) {
  for (const QSize size : {QSize(900, 600), QSize(1200, 800), QSize(1920, 1080)}) {
    Window window(default_document(), size);
    QTableView& table = window->runs().table();
    const QString name = "torch-compile, measured";
    EXPECT_GE(table.columnWidth(RunModel::name),
              table.fontMetrics().horizontalAdvance(name.left(14)))
        << size.width();
    EXPECT_FALSE(table.isColumnHidden(RunModel::time));
  }
  Window wide(default_document(), {3840, 2160});
  EXPECT_FALSE(wide->runs().table().isColumnHidden(RunModel::time_delta));
}

TEST(MainWindow, AWhatIfSliderChangesTheTime) {
  Window window;
  const Seconds before = window.totals(window.bench().shown_run()).time;
  auto* slider = window->findChild<QSlider*>("what-if-sm_clock");
  ASSERT_NE(slider, nullptr);
  QTest::keyClick(slider, Qt::Key_PageDown);  // half
  window.settle();
  EXPECT_NEAR(window.bench().document().setup.what_if.sm_clock, 0.5, 1e-9);
  EXPECT_GT(window.totals(window.bench().shown_run()).time, before);
}

TEST(MainWindow, WhatIfLeavesMeasuredRunsWithTheirNumbers) {
  Window window(default_document());
  QAbstractItemModel& runs = window->runs().model();
  const auto text = [&](int row, int column) {
    return runs.index(row, column).data().toString().toStdString();
  };
  const std::string before = text(1, RunModel::time);
  QTest::keyClick(window->findChild<QSlider*>("what-if-hbm_bandwidth"), Qt::Key_PageUp);
  window.settle();
  EXPECT_EQ(text(1, RunModel::time), before);
  EXPECT_EQ(text(1, RunModel::name), "eager, measured (h200)");
  EXPECT_EQ(text(0, RunModel::name), "eager (h200+what-if)");
  EXPECT_THAT(runs.index(1, 0).data(Qt::ToolTipRole).toString().toStdString(),
              HasSubstr("measured on the unchanged GPU"));
  EXPECT_EQ(runs.index(1, 0).data(Qt::EditRole).toString().toStdString(), "eager, measured");
}

TEST(MainWindow, APinnedRunSaysOnWhichMachineItIs) {
  Window window;
  const RunId pinned = window.bench().document().runs.all()[0].id;
  window.session().act([&](Workbench& bench) { bench.pin_run(pinned, true); });
  window.settle();
  QAbstractItemModel& runs = window->runs().model();
  EXPECT_EQ(runs.index(0, RunModel::name).data().toString().toStdString(), "eager");
  gui::Setup setup = window.bench().document().setup;
  setup.gpu = "h100-sxm";
  window.session().act([&](Workbench& bench) { bench.set_setup(setup, "GPU"); });
  window.settle();
  EXPECT_EQ(runs.index(0, RunModel::name).data().toString().toStdString(), "eager (h200)");
  EXPECT_EQ(runs.index(1, RunModel::name).data().toString().toStdString(),
            "per-operator (h100-sxm)");
  EXPECT_THAT(runs.index(1, 0).data(Qt::ToolTipRole).toString().toStdString(),
              HasSubstr("NVIDIA H100 SXM5 80 GB · forward"));
}

// A click costs what is seen: charts behind other tabs are drawn when they are looked at.
TEST(MainWindow, ViewsBehindOtherTabsAreDrawnWhenTheyAreRaised) {
  Window window;
  View* timeline = window->view("timeline");
  View* sweep = window->view("sweep");
  const auto shows_the_edit = [&] {
    const std::string rows = to_csv(timeline->tables().front());
    return rows.find("custom from") != std::string::npos;
  };
  sweep->cancel();  // one may be due, or have begun, since the window was laid out
  window.click_edge({"down", "residual2"});
  EXPECT_THAT(to_csv(window->view("traffic")->tables().front()), HasSubstr("custom from"));
  EXPECT_FALSE(shows_the_edit());
  EXPECT_FALSE(sweep->is_busy());
  window->raise_view("timeline");
  test::wait_until(shows_the_edit);
}

TEST(MainWindow, SearchSelectsWhatItFinds) {
  Window window;
  auto* search = window->findChild<SearchBox*>("search");
  search->setFocus();
  QTest::keyClicks(search, "gate_up");
  ASSERT_FALSE(search->hits().empty());
  QTest::keyClick(search, Qt::Key_Return);
  EXPECT_EQ(window.bench().selection().selected, search->hits().front().thing);
  const auto* details = window->findChild<QTextBrowser*>("details");
  EXPECT_THAT(details->toPlainText().toStdString(), HasSubstr("gate_up"));
}

TEST(MainWindow, TheQuestionMarkShowsAllShortcuts) {
  Window window;
  QTest::keyClicks(&*window, "?");
  const auto* sheet = window->findChild<QDialog*>("shortcut-sheet");
  ASSERT_NE(sheet, nullptr);
  EXPECT_TRUE(sheet->isVisible());
  const std::string text = sheet->findChild<QTextBrowser*>()->toPlainText().toStdString();
  EXPECT_THAT(text, HasSubstr("Ctrl+Z"));
  EXPECT_THAT(text, HasSubstr("lasso"));
}

TEST(MainWindow, NoTwoActionsShareAKey) {
  Window window;
  QStringList keys;
  for (const QAction* action : window->findChildren<QAction*>()) {
    if (action->shortcut().isEmpty()) continue;
    const QString key = action->shortcut().toString();
    EXPECT_FALSE(keys.contains(key)) << key.toStdString();
    keys << key;
  }
  EXPECT_GT(keys.size(), 15);
}

TEST(MainWindow, DarkColoursReachEveryView) {
  Window window;
  window->action("dark")->setChecked(true);
  QCoreApplication::processEvents();
  for (View* view : window->views()) {
    const QImage image = test::picture(*view, {500, 400});
    EXPECT_LT(image.pixelColor(0, 0).lightness(), 60) << view->id().toStdString();
  }
  EXPECT_LT(window->grab().toImage().pixelColor(5, 5).lightness(), 80);
  window->action("dark")->setChecked(false);
  QCoreApplication::processEvents();
  EXPECT_GT(graph_picture(window).pixelColor(0, 0).lightness(), 240);
}

TEST(MainWindow, SavedAndReopenedItGivesTheSamePicture) {
  Window window;
  window.click_edge({"down", "residual2"});
  window->graph().edit_bar().hide();
  window.session().hover({});
  window.session().select({});
  const QImage before = graph_picture(window);
  const std::filesystem::path file = window.folder() / "kept.toml";
  ASSERT_TRUE(window.session().save(file));
  EXPECT_FALSE(window.session().is_dirty());
  Window other(test::window_document({"coda"}));
  EXPECT_GT(test::difference(graph_picture(other), before), 0.01);
  ASSERT_TRUE(other.session().open(file));
  other.settle();
  EXPECT_EQ(test::difference(graph_picture(other), before, 0), 0);
}

TEST(MainWindow, AsksBeforeUnsavedWorkIsLost) {
  Window window;
  EXPECT_TRUE(window->files().may_lose_work());  // nothing to lose: no question
  window.click_edge({"down", "residual2"});
  QString text;
  test::answer_next_box(QMessageBox::Cancel, &text);
  EXPECT_FALSE(window->close());
  EXPECT_TRUE(window->isVisible());
  EXPECT_THAT(text.toStdString(), HasSubstr("not saved"));
  test::answer_next_box(QMessageBox::Discard);
  EXPECT_TRUE(window->close());
}

TEST(MainWindow, ADroppedGpuIsTaken) {
  Window window;
  QMimeData data;
  const QString gpu = QString(FUSELINE_SOURCE_DIR) + "/scenarios/gpus/h100-sxm.toml";
  data.setUrls({QUrl::fromLocalFile(gpu)});
  ASSERT_TRUE(FileActions::takes(data));
  window->files().drop(data);
  window.settle();
  EXPECT_EQ(window.bench().document().setup.gpu, gpu.toStdString());
  EXPECT_EQ(window->findChild<QComboBox*>("setup-gpu")->currentText().toStdString(),
            "h100-sxm.toml");
}

TEST(MainWindow, LayoutIsKeptAndCanBeReset) {
  Window window;
  auto* runs = window->findChild<QDockWidget*>("dock-runs");
  const QRect place = runs->geometry();
  runs->hide();
  window->reset_layout();
  QCoreApplication::processEvents();
  EXPECT_TRUE(runs->isVisible());
  EXPECT_NEAR(runs->width(), place.width(), 30);
}

class WindowSizes : public ::testing::TestWithParam<QSize> {};

TEST_P(WindowSizes, NothingOverlapsOrSticksOut) {
  Window window(test::window_document(), GetParam());
  ASSERT_EQ(window->size(), GetParam());
  std::vector<const QDockWidget*> docks;
  for (const QDockWidget* dock : window->findChildren<QDockWidget*>()) {
    if (!dock->visibleRegion().isEmpty()) docks.push_back(dock);
  }
  ASSERT_GE(docks.size(), 5U);
  for (const QDockWidget* dock : docks) {
    EXPECT_TRUE(window->rect().contains(dock->geometry())) << dock->objectName().toStdString();
    EXPECT_FALSE(dock->geometry().intersects(window->centralWidget()->geometry()))
        << dock->objectName().toStdString();
    for (const QDockWidget* other : docks) {
      if (other == dock) continue;
      EXPECT_FALSE(dock->geometry().intersects(other->geometry()))
          << dock->objectName().toStdString() << " " << other->objectName().toStdString();
    }
  }
  for (const QLabel* label : window->findChildren<QLabel*>()) {
    if (!label->isVisible() || label->wordWrap() || label->text().isEmpty()) continue;
    if (label->sizePolicy().horizontalPolicy() == QSizePolicy::Ignored) continue;
    EXPECT_GE(label->width(), label->sizeHint().width() - 1) << label->text().toStdString();
  }
}

INSTANTIATE_TEST_SUITE_P(FromSmallToLarge, WindowSizes,
                         ::testing::Values(QSize(900, 600), QSize(1280, 800), QSize(1920, 1080),
                                           QSize(3840, 2160)));

}  // namespace
}  // namespace fuseline::gui
