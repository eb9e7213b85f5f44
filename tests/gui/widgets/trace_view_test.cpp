// A profiler's trace in the window.
#include "gui/widgets/trace_view.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <QComboBox>
#include <QLabel>
#include <QPushButton>
#include <QTableWidget>

#include "tests/gui/widgets/window_support.h"

namespace fuseline::gui {
namespace {

using test::Window;
using ::testing::HasSubstr;

const std::filesystem::path kTraceFile = FUSELINE_SOURCE_DIR "/docs/torch-trace.json";

Document traced_document() {
  Document d = test::window_document({"torch-compile"});
  d.setup.model = "tinyllama";
  d.setup.workload = {.phase = Phase::decode, .batch = 1, .seq = 1, .context = 2048};
  return d;
}

TEST(TraceView, OpenedLikeAnyFileItIsMatchedAtOnce) {
  Window window(traced_document());
  window->files().open(kTraceFile);
  auto& view = *qobject_cast<TraceView*>(window->view("trace"));
  EXPECT_FALSE(view.visibleRegion().isEmpty());
  view.finish();
  ASSERT_FALSE(view.chart().rows.empty());
  EXPECT_THAT(view.chart().title, HasSubstr("torch-compile matches best"));
  EXPECT_THAT(view.findChild<QLabel*>("trace-judged")->text().toStdString(),
              HasSubstr("measured "));

  const std::size_t runs = window.bench().document().runs.all().size();
  view.findChild<QPushButton*>("trace-keep")->click();
  window.settle();
  ASSERT_EQ(window.bench().document().runs.all().size(), runs + 1);
  const gui::Run& added = window.bench().document().runs.all().back();
  EXPECT_TRUE(added.is_measurement());
  EXPECT_TRUE(window.bench().results().find(added.id)->ok());
}

TEST(TraceView, AnotherPolicyIsMatchedAnew) {
  Window window(traced_document());
  window->files().open(kTraceFile);
  auto& view = *qobject_cast<TraceView*>(window->view("trace"));
  view.finish();
  auto* policy = view.findChild<QComboBox*>("trace-policy");
  policy->setCurrentIndex(policy->findData("eager"));
  emit policy->activated(policy->currentIndex());
  view.finish();
  EXPECT_THAT(view.chart().title, HasSubstr("eager: "));
}

TEST(TraceView, ALaunchIsMatchedByHandAndTakenBack) {
  Window window(traced_document());
  window->files().open(kTraceFile);
  auto& view = *qobject_cast<TraceView*>(window->view("trace"));
  view.finish();
  QTest::mouseClick(view.findChild<QPushButton*>("trace-by-hand"), Qt::LeftButton);
  auto* launches = view.findChild<QTableWidget*>("trace-launches");
  ASSERT_GT(launches->rowCount(), 2);
  ASSERT_TRUE(launches->isVisible());
  const QString before = launches->item(0, 0)->text();
  QTest::mouseClick(launches->viewport(), Qt::LeftButton, {},
                    launches->visualItemRect(launches->item(0, 3)).center());
  auto* kernel = view.findChild<QComboBox*>("trace-kernel");
  EXPECT_EQ(kernel->currentText(), before) << "the box shows what the launch is now";
  kernel->setCurrentIndex(0);
  QTest::mouseClick(view.findChild<QPushButton*>("trace-match"), Qt::LeftButton);
  EXPECT_EQ(launches->item(0, 0)->text(), "none");
  EXPECT_THAT(view.findChild<QLabel*>("trace-judged")->text().toStdString(), HasSubstr("measured"));
  QTest::mouseClick(view.findChild<QPushButton*>("trace-take-back"), Qt::LeftButton);
  EXPECT_EQ(launches->item(0, 0)->text(), before);
}

// In a low window the chart keeps its room, and a line says what the list under it would.
TEST(TraceView, ALowViewIsTheCharts) {
  Window window(traced_document(), {900, 600});
  window->files().open(kTraceFile);
  auto& view = *qobject_cast<TraceView*>(window->view("trace"));
  view.finish();
  view.match({0}, {});  // all launches of this trace are kernels
  window.settle();
  ASSERT_FALSE(view.chart().rest.empty());
  EXPECT_FALSE(view.findChild<QTableWidget*>("trace-rest")->isVisible());
  EXPECT_THAT(view.findChild<QLabel*>("trace-judged")->text().toStdString(),
              HasSubstr("no kernel of the plan"));
  Plot& plot = *view.findChild<Plot*>();
  EXPECT_GT(2 * plot.height(), view.height());
  // The rows are inside of the axes, and these are under the header.
  plot.replot();
  const QRect axes = plot.axisRect()->rect();
  const double first = plot.pixel({0, 0}).y(),
               last = plot.pixel({0, static_cast<double>(plot.scene().rows.size() - 1)}).y();
  EXPECT_GE(first, axes.top());
  EXPECT_LE(last, axes.bottom());
  EXPECT_GE(axes.top(), plot.plotLayout()->element(0, 0)->rect().bottom());
  EXPECT_LE(axes.bottom(), plot.height());
  window->resize(1400, 1000);
  window.settle();
  EXPECT_TRUE(view.findChild<QTableWidget*>("trace-rest")->isVisible());
}

TEST(TraceView, ATraceOfAnotherBlockIsNoError) {
  Document document = test::window_document({"torch-compile"});
  document.setup.workload.seq = 2048;
  Window window(document);
  window->files().open(kTraceFile);
  auto& view = *qobject_cast<TraceView*>(window->view("trace"));
  view.finish();
  const QString text = view.findChild<QLabel*>("trace-judged")->text();
  EXPECT_THAT(text.toStdString(), HasSubstr("cannot be of this block"));
  const Scene& scene = view.findChild<Plot*>()->scene();
  EXPECT_THAT(scene.footnote, HasSubstr("cannot be of this block"));
  for (const Row& row : scene.rows) EXPECT_EQ(row.result, "");
}

TEST(TraceView, ABrokenTraceSaysWhy) {
  Window window(traced_document());
  auto& view = *qobject_cast<TraceView*>(window->view("trace"));
  window->raise_view("trace");
  view.open(FUSELINE_SOURCE_DIR "/README.md");
  view.finish();
  EXPECT_TRUE(view.chart().rows.empty());
  EXPECT_FALSE(view.findChild<QPushButton*>("trace-keep")->isEnabled());
}

}  // namespace
}  // namespace fuseline::gui
