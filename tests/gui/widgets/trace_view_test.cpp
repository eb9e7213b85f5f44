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
