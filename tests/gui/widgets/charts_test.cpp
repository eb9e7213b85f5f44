// Charts under real input events: hovering and selecting link with the workbench, zooming goes in
// and back.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <QComboBox>
#include <QTemporaryDir>
#include <QToolTip>
#include <cmath>
#include <filesystem>
#include <fstream>

#include "gui/model/text.h"
#include "gui/widgets/charts/canvas.h"
#include "gui/widgets/charts/mark_layer.h"
#include "gui/widgets/charts/memory_view.h"
#include "gui/widgets/charts/roofline_view.h"
#include "gui/widgets/charts/sweep_view.h"
#include "gui/widgets/charts/ticker.h"
#include "gui/widgets/charts/timeline_view.h"
#include "gui/widgets/charts/traffic_view.h"
#include "gui/widgets/charts/validation_view.h"
#include "gui/widgets/charts/waterfall_view.h"
#include "tests/gui/widgets/charts_support.h"

namespace fuseline::gui {
namespace {

using test::Shown;
using ::testing::HasSubstr;

// The largest kernel of a run: a bar that is wide enough to hit.
Thing largest_kernel(const Results& results, RunId run) {
  const auto& kernels = results.find(run)->result->kernels;
  std::size_t largest = 0;
  for (std::size_t i = 0; i < kernels.size(); ++i) {
    if (kernels[i].hbm() > kernels[largest].hbm()) largest = i;
  }
  return kernel_thing(run, largest);
}

QRgb pixel_at(QWidget& widget, QPointF at) { return widget.grab().toImage().pixel(at.toPoint()); }

TEST(Charts, HoveringABarHoversItsKernelAndShowsItsExactBytes) {
  Shown<TrafficView> shown(test::small_document());
  const RunId eager = shown.bench().document().runs.baseline();
  const Thing kernel = largest_kernel(shown.bench().results(), eager);
  const Mark* bar = test::mark_of(shown.plot(), kernel);
  ASSERT_NE(bar, nullptr);

  test::move_mouse(shown.plot(), {2, 2});
  EXPECT_TRUE(shown.bench().selection().hovered.is_nothing());
  test::move_mouse(shown.plot(), test::middle(shown.plot(), *bar));

  EXPECT_TRUE(shown.bench().selection().hovered == kernel);
  const KernelRow& row = shown.bench().results().find(eager)->result->kernels[kernel.kernel];
  EXPECT_THAT(QToolTip::text().toStdString(), HasSubstr(exact_bytes(row.estimate.hbm_read)));
}

TEST(Charts, ClickingABarSelectsAndClickingBesideItSelectsNothing) {
  Shown<TrafficView> shown(test::small_document());
  const RunId eager = shown.bench().document().runs.baseline();
  const Thing kernel = largest_kernel(shown.bench().results(), eager);
  test::click(shown.plot(), test::middle(shown.plot(), *test::mark_of(shown.plot(), kernel)));
  EXPECT_TRUE(shown.bench().selection().selected == kernel);
  test::click(shown.plot(), {3, 3});
  EXPECT_TRUE(shown.bench().selection().selected.is_nothing());
}

TEST(Charts, LeavingThePlotHoversNothing) {
  Shown<TrafficView> shown(test::small_document());
  const Thing kernel =
      largest_kernel(shown.bench().results(), shown.bench().document().runs.baseline());
  test::move_mouse(shown.plot(), test::middle(shown.plot(), *test::mark_of(shown.plot(), kernel)));
  ASSERT_FALSE(shown.bench().selection().hovered.is_nothing());
  QEvent leave(QEvent::Leave);
  QCoreApplication::sendEvent(&shown.plot(), &leave);
  EXPECT_TRUE(shown.bench().selection().hovered.is_nothing());
}

TEST(Charts, ASelectionFromOutsideFadesAllOtherBars) {
  Shown<TrafficView> shown(test::small_document());
  const RunId eager = shown.bench().document().runs.baseline();
  const Thing kernel = largest_kernel(shown.bench().results(), eager);
  const Mark& lit = *test::mark_of(shown.plot(), kernel);
  const Mark* other = nullptr;
  for (const Mark& mark : shown.plot().scene().marks) {
    const QPointF size = shown.plot().pixel(mark.to) - shown.plot().pixel(mark.from);
    if (mark.thing.kind == ThingKind::kernel && mark.thing.run == eager &&
        mark.thing.kernel != kernel.kernel && size.x() > 12) {
      other = &mark;
    }
  }
  ASSERT_NE(other, nullptr);
  // Near the corner: labels are in the middle.
  const auto corner = [&](const Mark& m) { return shown.plot().pixel(m.from) + QPointF(5, 5); };
  const QRgb lit_before = pixel_at(shown.plot(), corner(lit));
  const QRgb other_before = pixel_at(shown.plot(), corner(*other));

  shown.bench().select(kernel);
  shown.view().show_highlight(shown.bench().highlighted());
  QCoreApplication::processEvents();

  EXPECT_EQ(pixel_at(shown.plot(), corner(lit)), lit_before);
  EXPECT_EQ(pixel_at(shown.plot(), corner(*other)),
            shown.view().theme().faded(QColor(other_before)).rgb());
}

TEST(Charts, DraggingZoomsAndADoubleClickGoesBack) {
  Shown<TrafficView> shown(test::small_document());
  Plot& plot = shown.plot();
  const Plot::Zoom all = plot.shown();
  const QRectF axes = plot.axisRect()->rect();
  const QPointF from(axes.left() + 0.25 * axes.width(), axes.top() + 20);
  const QPointF to(axes.left() + 0.5 * axes.width(), axes.bottom() - 20);

  test::drag(plot, from, to);
  ASSERT_TRUE(plot.is_zoomed());
  EXPECT_NEAR(plot.shown().x.low, 0.25 * all.x.high, 0.01 * all.x.high);
  EXPECT_NEAR(plot.shown().x.high, 0.5 * all.x.high, 0.01 * all.x.high);
  EXPECT_EQ(plot.shown().y, all.y) << "rows are not zoomed";
  EXPECT_TRUE(shown.bench().selection().selected.is_nothing()) << "a drag is no click";

  test::double_click(plot, axes.center());
  EXPECT_FALSE(plot.is_zoomed());
  EXPECT_EQ(plot.shown(), all);
}

TEST(Charts, TwoZoomsGoBackOneByOneAndEscapeShowsAll) {
  Shown<RooflineView> shown(test::small_document(), MemoryLevel::hbm);
  Plot& plot = shown.plot();
  const Plot::Zoom all = plot.shown();
  const QRectF axes = plot.axisRect()->rect();
  test::drag(plot, axes.topLeft() + QPointF(40, 40), axes.center());
  const Plot::Zoom once = plot.shown();
  EXPECT_NE(once.y, all.y);
  test::drag(plot, axes.topLeft() + QPointF(60, 60), axes.center());
  EXPECT_NE(plot.shown(), once);
  test::double_click(plot, axes.center());
  EXPECT_EQ(plot.shown(), once);
  QTest::keyClick(&plot, Qt::Key_Escape);
  EXPECT_EQ(plot.shown(), all);
}

TEST(Charts, NewResultsKeepTheZoomWhileTheAxesStay) {
  Shown<RooflineView> shown(test::small_document(), MemoryLevel::hbm);
  const QRectF axes = shown.plot().axisRect()->rect();
  test::drag(shown.plot(), axes.topLeft() + QPointF(40, 40), axes.center());
  const Plot::Zoom zoom = shown.plot().shown();
  shown.bench().add_run({.policy = "torch-compile"});
  shown.bench().wait();
  shown.view().refresh();
  EXPECT_EQ(shown.plot().shown(), zoom);
}

TEST(Charts, ArrowKeysStepThroughThingsAndEnterSelects) {
  Shown<TrafficView> shown(test::small_document());
  Plot& plot = shown.plot();
  QTest::keyClick(&plot, Qt::Key_Right);
  const Thing first = shown.bench().selection().hovered;
  ASSERT_FALSE(first.is_nothing());
  QTest::keyClick(&plot, Qt::Key_Right);
  EXPECT_FALSE(shown.bench().selection().hovered == first);
  QTest::keyClick(&plot, Qt::Key_Left);
  EXPECT_TRUE(shown.bench().selection().hovered == first);
  QTest::keyClick(&plot, Qt::Key_Return);
  EXPECT_TRUE(shown.bench().selection().selected == first);
  EXPECT_EQ(plot.focusPolicy(), Qt::StrongFocus);
}

TEST(Charts, RooflineAxesStayWhereTheyAreWhenTheDataChange) {
  Shown<RooflineView> shown(test::small_document({"eager"}), MemoryLevel::l2);
  const Plot::Zoom before = shown.plot().shown();
  fuseline::gui::Setup setup = shown.bench().document().setup;
  setup.workload.seq = 2048;
  shown.bench().set_setup(setup, "tokens");
  shown.bench().add_run({.policy = "coda"});
  shown.bench().wait();
  const std::size_t marks = shown.plot().scene().marks.size();
  shown.view().refresh();
  EXPECT_NE(shown.plot().scene().marks.size(), marks) << "the data did change";
  EXPECT_EQ(shown.plot().shown(), before);
}

TEST(Charts, SwitchingTheStackShowsTensorsThatCanBeHovered) {
  Shown<TrafficView> shown(test::small_document());
  shown.view().stack_by(StackBy::tensor);
  QCoreApplication::processEvents();
  const Mark* weight = test::mark_of(shown.plot(), tensor_thing("w_down"));
  for (const Mark& mark : shown.plot().scene().marks) {
    if (weight == nullptr && mark.thing.kind == ThingKind::tensor) weight = &mark;
  }
  ASSERT_NE(weight, nullptr);
  test::move_mouse(shown.plot(), test::middle(shown.plot(), *weight));
  EXPECT_EQ(shown.bench().selection().hovered.kind, ThingKind::tensor);
}

TEST(Charts, TheTimelineFollowsASelectedTensor) {
  Shown<TimelineView> shown(test::small_document());
  shown.view().finish();
  const Results& results = shown.bench().results();
  const RunResult& eager = *results.baseline_view()->result;
  std::string activation;
  for (std::size_t i = 0; i < eager.plan->graph.tensors().size(); ++i) {
    const Tensor& t = eager.plan->graph.tensors()[i];
    if (t.role == Role::activation && eager.plan->homes[i] != Home::on_chip) activation = t.name;
  }
  ASSERT_FALSE(activation.empty());
  shown.bench().select(tensor_thing(activation));
  shown.view().show_highlight(shown.bench().highlighted());
  EXPECT_TRUE(shown.view().is_busy());
  shown.view().finish();
  EXPECT_FALSE(shown.view().is_busy());
  EXPECT_THAT(shown.plot(1).scene().title, HasSubstr(activation + " in L2"));
}

TEST(Charts, TimelineRowsOfOneWidthStandAboveTheResidency) {
  Shown<TimelineView> shown(test::small_document());
  shown.view().finish();
  QCoreApplication::processEvents();
  shown.plot(1).grab();
  EXPECT_EQ(shown.plot(0).axisRect()->left(), shown.plot(1).axisRect()->left());
  EXPECT_EQ(shown.plot(0).axisRect()->right(), shown.plot(1).axisRect()->right());
}

TEST(Charts, HoveringAMemoryBoxHoversItsLevel) {
  Shown<MemoryView> shown(test::small_document());
  MemoryCanvas& canvas = shown.view().canvas();
  canvas.grab();
  const auto hbm = std::find_if(canvas.parts().begin(), canvas.parts().end(), [](const auto& p) {
    return p.thing == level_thing(MemoryLevel::hbm);
  });
  ASSERT_NE(hbm, canvas.parts().end());
  const QImage before = canvas.grab().toImage();
  test::move_mouse(canvas, hbm->area.center());
  EXPECT_TRUE(shown.bench().selection().hovered == level_thing(MemoryLevel::hbm));
  EXPECT_GT(test::difference(before, canvas.grab().toImage()), 0) << "the box is outlined";
}

TEST(Charts, AMemoryHierarchyFollowsTheSelectedKernel) {
  Shown<MemoryView> shown(test::small_document());
  const RunId run = shown.bench().shown_run();
  shown.bench().select(kernel_thing(run, 1));
  shown.view().show_highlight(shown.bench().highlighted());
  const std::string name = shown.bench().results().find(run)->result->kernels[1].estimate.name;
  EXPECT_EQ(shown.view().canvas().charts().front().title,
            name + " of " + shown.bench().results().find(run)->run.name);
}

TEST(Charts, ASweepRunsInTheBackgroundWithProgressAndCanBeCancelled) {
  Shown<SweepView> shown(test::small_document());
  int changes = 0;
  QObject::connect(&shown.view(), &View::busy_changed, [&] { ++changes; });
  shown.view().sweep_over(SweepAxis::batch);
  EXPECT_TRUE(shown.view().is_busy());
  EXPECT_TRUE(shown.view().chart().curves.empty()) << "not on this thread";
  shown.view().cancel();
  EXPECT_FALSE(shown.view().is_busy());
  EXPECT_THAT(shown.plot().scene().problem, HasSubstr("cancelled"));
  shown.view().finish();
  EXPECT_FALSE(shown.view().is_busy());
  EXPECT_EQ(shown.view().chart().axis, SweepAxis::batch);
  EXPECT_EQ(shown.view().chart().curves.size(), 2U);
  EXPECT_GE(changes, 3);
}

// QCustomPlot leaves out a text that would be cut at the widget's edge.
TEST(Charts, ASweepHasRoomForItsLastValue) {
  Shown<SweepView> shown(test::small_document());
  shown.view().finish();
  for (Plot* plot : shown.view().findChildren<Plot*>()) {
    plot->replot();
    const Tick& last = plot->scene().x.ticks.back();
    const double half =
        text_width(in_pixels(small_font(plot->font())), QString::fromStdString(last.text)) / 2;
    EXPECT_LE(plot->pixel({last.at, plot->scene().y.range.low}).x() + half, plot->width());
  }
}

TEST(Charts, NarrowAxesNameTheirFirstAndLastValue) {
  AxisSpec axis;
  for (int i = 0; i < 8; ++i) axis.ticks.push_back({static_cast<double>(i), std::to_string(i)});
  for (int most = 2; most <= 9; ++most) {
    ChartTicker ticker(axis);
    ticker.set_room(10 * most, 10);
    QVector<double> ticks;
    QVector<QString> labels;
    ticker.generate({0, 7}, QLocale::c(), 'g', 6, ticks, nullptr, &labels);
    ASSERT_EQ(labels.size(), 8);
    EXPECT_EQ(labels.front(), "0") << most;
    EXPECT_EQ(labels.back(), "7") << most;
    EXPECT_LE(labels.size() - labels.count(QString()), std::max(most, 2)) << most;
  }
}

TEST(Charts, AHiddenChartComesBackAsItIsNow) {
  Shown<TrafficView> shown(test::small_document());
  const QImage before = shown.plot().grab().toImage();
  shown.view().hide();
  QCoreApplication::processEvents();
  EXPECT_EQ(test::difference(before, shown.plot().grab().toImage()), 0) << "painted while hidden";
  shown.view().show();
  shown.view().hide();
  const Scene kept = shown.plot().scene();
  shown.plot().set_scene(empty_scene("nothing", "none"));
  shown.plot().set_scene(kept);
  shown.view().show();
  test::wait_until([&] { return shown.plot().isVisible(); });
  EXPECT_EQ(test::difference(before, shown.plot().grab().toImage()), 0);
}

TEST(Charts, AContextSweepOutsideOfDecodeSaysWhyInPlace) {
  Shown<SweepView> shown(test::small_document());
  shown.view().sweep_over(SweepAxis::context);
  EXPECT_FALSE(shown.view().is_busy());
  EXPECT_THAT(shown.plot().scene().problem, HasSubstr("decode"));
}

TEST(Charts, WithoutMeasurementsTheValidationSaysWhatToDo) {
  Shown<ValidationView> shown(test::small_document());
  EXPECT_THAT(shown.plot().scene().problem, HasSubstr("measure"));
  shown.view().judge_all();
  EXPECT_THAT(shown.plot().scene().problem, HasSubstr("fuseline measure"));
}

// A folder with two measured blocks of an H200.
std::string few_measurements(const QTemporaryDir& folder) {
  const std::filesystem::path from = default_document().measurements;
  const std::filesystem::path to = folder.path().toStdString();
  std::filesystem::copy(from / "meta.toml", to / "meta.toml");
  std::ifstream all(from / "block.csv");
  std::ofstream few(to / "block.csv");
  std::string line;
  for (int i = 0; i < 3 && std::getline(all, line); ++i) few << line << "\n";
  return to.string();
}

TEST(Charts, AllMeasurementsAreJudgedForTheGpuThatTheyWereTakenOn) {
  const QTemporaryDir folder;
  const std::string measurements = few_measurements(folder);
  const auto judged_in_a_session_about = [&](const std::string& gpu) {
    Document document = test::small_document({"eager"});
    document.measurements = measurements;
    document.setup.gpu = gpu;
    Shown<ValidationView> shown(document);
    shown.view().finish();
    return std::pair(to_csv(shown.view().tables().front()), shown.plot().scene().footnote);
  };
  const auto [points, footnote] = judged_in_a_session_about("h200");
  EXPECT_THAT(points, HasSubstr("llama2-7b eager forward"));
  EXPECT_THAT(footnote, ::testing::Not(HasSubstr("session")));
  const auto [other_points, other_footnote] = judged_in_a_session_about("a100-sxm-80gb");
  EXPECT_EQ(other_points, points);
  EXPECT_THAT(other_footnote, HasSubstr("judged by predictions for NVIDIA H200"));
  EXPECT_THAT(other_footnote, HasSubstr("The session's GPU is NVIDIA A100"));
}

TEST(Charts, RunsThatAllFailSayWhyInEveryView) {
  Document document = test::small_document({"eager"});
  document.setup.model = "no-such-model";
  test::application();
  Workbench bench(document, [] {});
  bench.wait();
  QWidget home;
  for (View* view : make_chart_views(bench, &home)) {
    view->refresh();
    view->finish();
    const QImage image = test::picture(*view, {600, 400});
    EXPECT_LT(test::part_of(image, view->theme().background()), 0.9999) << view->id().toStdString();
    auto* chart = dynamic_cast<ChartView*>(view);
    ASSERT_NE(chart, nullptr);
    if (!chart->plots().empty()) {
      EXPECT_FALSE(chart->plots().front()->scene().problem.empty()) << view->id().toStdString();
    }
  }
}

TEST(Charts, TheStepsOfTheWaterfallSelectKernels) {
  Shown<WaterfallView> shown(test::small_document());
  shown.view().finish();
  QCoreApplication::processEvents();
  const Mark* step = nullptr;
  double widest = 0;
  for (const Mark& mark : shown.plot().scene().marks) {
    if (mark.shape != Shape::bar || mark.thing.kind != ThingKind::kernel) continue;
    if (mark.to.x - mark.from.x > widest) {
      widest = mark.to.x - mark.from.x;
      step = &mark;
    }
  }
  ASSERT_NE(step, nullptr);
  test::click(shown.plot(), test::middle(shown.plot(), *step));
  EXPECT_TRUE(shown.bench().selection().selected == step->thing);
}

}  // namespace
}  // namespace fuseline::gui
