// What annoyed people in the window once, and does not come back: export, files of measurements,
// colours that are kept, names for screen readers.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <QAction>
#include <QClipboard>
#include <QGraphicsItem>
#include <QMenu>
#include <QProgressBar>
#include <QPushButton>
#include <QSignalSpy>
#include <QTableView>
#include <filesystem>
#include <fstream>
#include <set>

#include "gui/model/choices.h"
#include "gui/widgets/causes_view.h"
#include "gui/widgets/charts/error_table.h"
#include "gui/widgets/charts/plot.h"
#include "gui/widgets/charts/sweep_view.h"
#include "gui/widgets/charts/validation_view.h"
#include "gui/widgets/kernel_view.h"
#include "gui/widgets/pair_view.h"
#include "tests/gui/widgets/window_support.h"

namespace fuseline::gui {
namespace {

using test::Window;
using ::testing::HasSubstr;

std::size_t files_in(const std::filesystem::path& folder) {
  std::error_code none;
  std::size_t count = 0;
  for (std::filesystem::directory_iterator at(folder, none), end; !none && at != end; ++at) ++count;
  return count;
}

TEST(Export, LeavesTheWindowFreeAndWritesAllFilesAtTheEnd) {
  Window window;
  const std::filesystem::path folder = window.folder() / "out";
  window->export_to(folder);
  EXPECT_TRUE(window->is_exporting());
  EXPECT_EQ(files_in(folder), 0U);
  EXPECT_TRUE(window->findChild<QProgressBar*>("progress")->isVisible());
  // It takes part in what goes on: a step of its own at a time.
  QCoreApplication::processEvents();
  EXPECT_TRUE(window->is_exporting());
  test::wait_until([&] { return !window->is_exporting(); });
  for (const View* view : window->views())
    for (const char* format : {".png", ".svg", ".pdf"})
      EXPECT_TRUE(std::filesystem::exists(folder / (view->id().toStdString() + format)));
  EXPECT_TRUE(std::filesystem::exists(folder / "predictions.json"));
  EXPECT_FALSE(window->findChild<QProgressBar*>("progress")->isVisible());
}

TEST(Export, CancelledOrOvertakenByAChangeItWritesNothing) {
  Window window;
  const std::filesystem::path folder = window.folder() / "out";
  window->export_to(folder);
  QTest::keyClick(&*window, Qt::Key_Escape);
  EXPECT_FALSE(window->is_exporting());
  EXPECT_EQ(files_in(folder), 0U);
  window->export_to(folder);
  gui::Setup setup = window.bench().document().setup;
  setup.workload.batch = 2;
  window.session().act([&](Workbench& bench) { bench.set_setup(setup, "batch"); });
  window.settle();
  EXPECT_FALSE(window->is_exporting());
  EXPECT_EQ(files_in(folder), 0U);
}

// One measured block of the small window's model.
std::filesystem::path measured(const std::filesystem::path& folder, const std::string& meta,
                               int tokens) {
  std::filesystem::create_directories(folder);
  std::ofstream(folder / "block.csv")
      << "model,execution,phase,batch,seq,context,ms_median,ms_min,ms_max\n"
      << "llama2-7b,eager,forward,1," << tokens << ",0,0.9,0.89,0.91\n";
  if (!meta.empty()) std::ofstream(folder / "meta.toml") << meta;
  return folder;
}

TEST(Measurements, AFolderIsOpenedAndItsFittingRunsAreAdded) {
  Window window;
  const std::size_t before = window.bench().document().runs.all().size();
  const auto folder = measured(window.folder() / "own", "title = \"own\"\ngpu = \"h200\"\n", 1024);
  window->files().open(folder);
  window.settle();
  ASSERT_EQ(window.bench().document().runs.all().size(), before + 1);
  EXPECT_TRUE(window.bench().results().runs.back().ok());
  EXPECT_NE(window->files().find("open-folder"), nullptr);
}

TEST(Measurements, WithoutAMetaFileTheRefusalSaysWhatToWriteWhere) {
  Window window;
  const Document before = window.bench().document();
  window->files().open(measured(window.folder() / "own", "", 1024) / "block.csv");
  const std::string said = test::take_failure(*window).toStdString();
  EXPECT_THAT(said, HasSubstr("meta.toml"));
  EXPECT_THAT(said, HasSubstr("gpu = \"h200\""));
  EXPECT_EQ(window.bench().document(), before);
}

TEST(Measurements, WhatDoesNotFitIsNamedWithTheSessionsOwn) {
  Window window;
  window->files().open(
      measured(window.folder() / "tokens", "title = \"t\"\ngpu = \"h200\"\n", 4096));
  EXPECT_THAT(test::take_failure(*window).toStdString(), HasSubstr("T = 4,096, here 1,024"));
  window->files().open(
      measured(window.folder() / "gpu", "title = \"t\"\ngpu = \"h100-sxm\"\n", 1024));
  const std::string said = test::take_failure(*window).toStdString();
  EXPECT_THAT(said, HasSubstr("was measured on h100-sxm"));
  EXPECT_THAT(said, HasSubstr("GPU is h200"));
}

TEST(Measurements, OnesOwnAreJudgedAfterTheyWereOpened) {
  Window window;
  window->files().open(
      measured(window.folder() / "own", "title = \"own\"\ngpu = \"h200\"\n", 4096));
  test::take_failure(*window);  // no run of this comparison: it can be judged all the same
  window.settle();
  window->raise_view("validation");
  auto* view = dynamic_cast<ValidationView*>(window->view("validation"));
  view->refresh();
  view->judge_all();
  view->finish();
  const std::string table = to_csv(view->tables().front());
  EXPECT_THAT(table, HasSubstr("llama2-7b eager forward 1x4096"));
}

TEST(Validation, TheTableOfErrorsIsSeenAtTheDefaultSizeOnceItWasAskedFor) {
  Window window(default_document(), {1240, 800});
  window->raise_view("validation");
  QCoreApplication::processEvents();
  auto* view = dynamic_cast<ValidationView*>(window->view("validation"));
  view->judge_all();
  view->finish();
  QCoreApplication::processEvents();
  auto* table = view->findChild<ErrorTableWidget*>();
  EXPECT_TRUE(table->isVisible());
  EXPECT_GE(table->height(), 100);
  EXPECT_GE(table->rowCount(), 3);
}

TEST(Sweep, ItsRangeIsChosen) {
  Window window;
  auto* view = dynamic_cast<SweepView*>(window->view("sweep"));
  view->sweep_range(100, 500);
  view->finish();
  ASSERT_FALSE(view->chart().curves.empty());
  std::vector<std::int64_t> values;
  for (const SweepPoint& p : view->chart().curves.front().points) values.push_back(p.value);
  EXPECT_THAT(values, ::testing::ElementsAre(100, 200, 400, 500));
}

TEST(Colours, AreThoseOfTheLastWindow) {
  Window window;
  EXPECT_EQ(chosen_colours(window.folder()), std::nullopt);
  window->action("dark")->setChecked(true);
  EXPECT_EQ(chosen_colours(window.folder()), std::optional(true));
  window->action("dark")->setChecked(false);
  EXPECT_EQ(chosen_colours(window.folder()), std::optional(false));
  QApplication::setPalette(light_palette());
}

// A view of a list hears of its own selection, also when the window changes it.
TEST(SelectionModels, AreNotSilenced) {
  Window window;
  const std::vector<gui::Run> runs = window.bench().document().runs.all();
  window.session().show_run(runs[0].id);
  auto* kernels = dynamic_cast<KernelView*>(window->view("kernels"));
  QSignalSpy runs_moved(window->runs().table().selectionModel(),
                        &QItemSelectionModel::currentRowChanged);
  window.session().show_run(runs[1].id);
  EXPECT_EQ(runs_moved.count(), 1);
  EXPECT_TRUE(window.bench().selection().selected.is_nothing());  // no person chose it
  QSignalSpy kernel_moved(kernels->table().selectionModel(),
                          &QItemSelectionModel::currentRowChanged);
  window.session().select(kernel_thing(runs[1].id, 3));
  EXPECT_GE(kernel_moved.count(), 1);
  EXPECT_EQ(window.bench().selection().selected, kernel_thing(runs[1].id, 3));
}

TEST(ScreenReaders, HearWhatEachPictureIsAndWhatItSays) {
  Window window;
  for (View* view : window->views()) {
    view->refresh();
    view->finish();
    for (const Plot* plot : view->findChildren<Plot*>()) {
      EXPECT_FALSE(plot->accessibleName().isEmpty()) << view->id().toStdString();
      EXPECT_FALSE(plot->accessibleDescription().isEmpty()) << view->id().toStdString();
    }
  }
  const GraphCanvas& canvas = window->graph().canvas();
  EXPECT_THAT(canvas.accessibleName().toStdString(), HasSubstr("one block of LLaMA-2-7B"));
  EXPECT_THAT(canvas.accessibleDescription().toStdString(), HasSubstr("operators"));
  auto* traffic = window->view("traffic")->findChild<Plot*>();
  EXPECT_THAT(traffic->accessibleDescription().toStdString(), HasSubstr("eager"));
}

TEST(Page, IsOneFileWithEveryView) {
  Window window;
  const std::filesystem::path file = window.folder() / "page.html";
  window->export_page_to(file);
  test::wait_until([&] { return !window->is_exporting(); });
  std::ifstream in(file);
  const std::string page{std::istreambuf_iterator<char>(in), {}};
  for (const View* view : window->views())
    EXPECT_THAT(page, HasSubstr("<h2 id=\"" + view->id().toStdString() + "\">"));
  EXPECT_THAT(page, HasSubstr("fuseline predict --model llama2-7b"));
  EXPECT_THAT(page, HasSubstr("data:image/svg+xml;base64,"));
}

TEST(Clipboard, TakesTheCommandAndAViewsData) {
  Window window;
  window->action("copy-command")->trigger();
  EXPECT_THAT(QApplication::clipboard()->text().toStdString(),
              HasSubstr("--policy eager,per-operator"));
  View* traffic = window->view("traffic");
  emit traffic->customContextMenuRequested({5, 5});
  auto* menu = traffic->findChild<QMenu*>("view-menu");
  ASSERT_NE(menu, nullptr);
  menu->actions()[1]->trigger();
  EXPECT_EQ(QApplication::clipboard()->text().toStdString(), to_csv(traffic->tables().front()));
  menu->actions()[0]->trigger();
  EXPECT_FALSE(QApplication::clipboard()->image().isNull());
  menu->close();
}

TEST(CausesView, AButtonMakesTheChangeThatItsCauseNames) {
  Window window(test::window_document({"eager"}));
  auto* view = dynamic_cast<CausesView*>(window->view("causes"));
  window->raise_view("causes");
  view->finish();
  const std::vector<Cause> causes = view->causes().causes;
  const auto edge = std::ranges::find_if(causes, [](const Cause& c) { return c.fuse.has_value(); });
  ASSERT_NE(edge, causes.end());
  const Seconds before = window.totals(window.bench().shown_run()).time;
  const auto buttons = view->findChildren<QPushButton*>("recover");
  const std::string wanted = "keep it on chip: " + edge->text;
  const auto button = std::ranges::find_if(
      buttons, [&](const QPushButton* b) { return b->accessibleName().toStdString() == wanted; });
  ASSERT_NE(button, buttons.end());
  (*button)->click();
  window.settle();
  ASSERT_EQ(window.bench().document().runs.all().size(), 2U);
  EXPECT_LT(window.totals(window.bench().shown_run()).time, before);
}

TEST(BestFusion, IsAddedAsARunAndCanBeUndone) {
  Window window(test::window_document({"eager"}));
  const Document before = window.bench().document();
  window->graph().search_best(0.5);
  EXPECT_TRUE(window->graph().is_busy());
  test::wait_until([&] { return window.bench().document().runs.all().size() == 2; });
  window.settle();
  EXPECT_TRUE(window.bench().results().runs.back().ok());
  EXPECT_THAT(window->graph().edit_bar().text().toStdString(), HasSubstr("plans"));
  window->action("undo")->trigger();
  window.settle();
  EXPECT_EQ(window.bench().document(), before);
}

TEST(TwoGraphs, ZoomAndMoveTogetherAndColourWhatDiffers) {
  Window window(test::window_document({"per-operator", "coda"}));
  auto* view = dynamic_cast<PairView*>(window->view("graphs"));
  window->raise_view("graphs");
  view->refresh();
  view->finish();
  QCoreApplication::processEvents();
  ASSERT_EQ(view->pair().problem, "");
  EXPECT_FALSE(view->pair().only_right.empty());
  view->canvas(0).zoom(1.5);
  EXPECT_EQ(view->canvas(1).transform(), view->canvas(0).transform());
  view->canvas(1).zoom(1.5);
  EXPECT_EQ(view->canvas(0).transform(), view->canvas(1).transform());
  int lit = 0, quiet = 0;
  for (const QGraphicsItem* item : view->canvas(1).graph().items()) {
    const auto* node = dynamic_cast<const NodeItem*>(item);
    if (node == nullptr || node->node().is_tensor) continue;
    (node->is_lit() ? lit : quiet) += 1;
    EXPECT_EQ(node->is_lit(), view->pair().only_right.operators.contains(node->node().label));
  }
  EXPECT_GE(lit, 1);
  EXPECT_GE(quiet, 1);
}

// Ten policies lie close together: all have a point and an own colour, three have names, and two
// their kernels.
TEST(Roofline, OfTenPoliciesCanBeRead) {
  Document document =
      test::window_document({"unfused", "composed", "eager", "per-operator", "flash-attention",
                             "tensorrt-llm", "xla", "torch-compile", "coda", "whole-block"});
  document.setup.workload.seq = 512;
  Window window(std::move(document));
  auto* view = qobject_cast<ChartView*>(window->view("roofline-hbm"));
  ASSERT_NE(view, nullptr);
  view->refresh();
  const Scene& scene = view->plots().front()->scene();
  std::set<int> with_kernels, blocks;
  std::set<QRgb> colours;
  int names = 0;
  for (const Mark& mark : scene.marks) {
    if (mark.shape != Shape::point && mark.shape != Shape::diamond) continue;
    const bool is_block = mark.shape == Shape::diamond;
    if (is_block) {
      blocks.insert(mark.thing.run.value);
      colours.insert(Theme(light_palette()).colour(mark.colour).rgb());
      if (!mark.label.empty()) ++names;
    } else {
      with_kernels.insert(mark.thing.run.value);
    }
  }
  EXPECT_EQ(blocks.size(), 10U);
  EXPECT_EQ(colours.size(), 10U);
  EXPECT_GE(names, 2);
  EXPECT_LE(names, 3);
  EXPECT_LE(with_kernels.size(), 2U);
}

}  // namespace
}  // namespace fuseline::gui
