// Tiles in motion under real input events: playing, scrubbing, a second run in step.
#include "gui/widgets/charts/motion_view.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <QCheckBox>
#include <QComboBox>
#include <QPainter>
#include <QSlider>
#include <QToolButton>
#include <set>

#include "gui/widgets/charts/memory_view.h"
#include "tests/gui/widgets/window_support.h"

namespace fuseline::gui {
namespace {

using test::Window;
using ::testing::HasSubstr;

MotionView& motion_of(Window& window) {
  window->raise_view("motion");
  window.settle();
  auto& view = *qobject_cast<MotionView*>(window->view("motion"));
  view.finish();
  QCoreApplication::processEvents();
  return view;
}

TEST(MotionView, OpensInTheMiddleOfTheShownRun) {
  Window window;
  MotionView& view = motion_of(window);
  ASSERT_EQ(view.canvas().tracks().size(), 1U);
  EXPECT_TRUE(view.canvas().tracks()[0].track.record);
  EXPECT_GT(view.canvas().time(), Seconds());
  EXPECT_LT(view.canvas().time(), view.canvas().length());
  EXPECT_FALSE(view.is_playing());
  view.canvas().grab();
  EXPECT_THAT(view.canvas().accessibleDescription().toStdString(), HasSubstr("HBM"));
  EXPECT_EQ(view.tables().size(), 1U);
}

// One clock: the memory hierarchy shows the kernels of both runs that move at the picture's time.
TEST(MotionView, TheMemoryHierarchyFollowsBothRunsInStep) {
  Window window(test::window_document({"eager", "coda"}));
  MotionView& view = motion_of(window);
  const gui::Run& eager = window.bench().document().runs.all().front();
  view.show_beside(eager.id);
  view.finish();
  ASSERT_EQ(view.canvas().tracks().size(), 2U);
  auto& memory = *qobject_cast<MemoryView*>(window->view("memory"));
  memory.findChild<QCheckBox*>("memory-in-motion")->setChecked(true);
  auto* slider = view.findChild<QSlider*>("motion-time");
  std::set<std::string> seen;
  for (const double part : {0.1, 0.5, 0.9}) {
    slider->setValue(static_cast<int>(part * slider->maximum()));
    const auto& charts = memory.canvas().charts();
    ASSERT_EQ(charts.size(), 2U);
    for (std::size_t i = 0; i < 2; ++i) {
      const MovingTrack& t = view.canvas().tracks()[i];
      const MotionFrame frame = frame_at(t.track, t.span, view.canvas().time());
      EXPECT_THAT(charts[i].title, HasSubstr(frame.kernel.substr(0, frame.kernel.find(':'))));
      EXPECT_THAT(charts[i].title, HasSubstr(i == 0 ? "coda" : "eager"));
      seen.insert(charts[i].title);
    }
    EXPECT_EQ(memory.tables().size(), 2U);
  }
  EXPECT_GE(seen.size(), 4U) << "time goes on";
  memory.findChild<QCheckBox*>("memory-in-motion")->setChecked(false);
  EXPECT_THAT(memory.canvas().charts().front().title, HasSubstr("the block"));
}

TEST(MotionView, TheKeyboardPlaysAndSteps) {
  Window window;
  MotionView& view = motion_of(window);
  MotionCanvas& canvas = view.canvas();
  canvas.setFocus();
  QTest::keyClick(&canvas, Qt::Key_Home);
  EXPECT_EQ(canvas.time(), Seconds());
  QTest::keyClick(&canvas, Qt::Key_Right);
  const Seconds first = canvas.time();
  EXPECT_GT(first, Seconds());
  QTest::keyClick(&canvas, Qt::Key_Right);
  EXPECT_GT(canvas.time(), first);
  QTest::keyClick(&canvas, Qt::Key_Left);
  EXPECT_NEAR(canvas.time() / first, 1, 1e-9);
  QTest::keyClick(&canvas, Qt::Key_End);
  EXPECT_EQ(canvas.time(), canvas.length());
  QTest::keyClick(&canvas, Qt::Key_Space);  // from the end on: begins anew
  EXPECT_TRUE(view.is_playing());
  EXPECT_LT(canvas.time(), canvas.length());
  const Seconds before = canvas.time();
  EXPECT_TRUE(QTest::qWaitFor([&] { return canvas.time() > before; }, 10000));
  QTest::keyClick(&canvas, Qt::Key_Space);
  EXPECT_FALSE(view.is_playing());
}

TEST(MotionView, TheSliderAndTheStripScrub) {
  Window window;
  MotionView& view = motion_of(window);
  auto* slider = view.findChild<QSlider*>("motion-time");
  slider->setValue(slider->maximum() / 2);
  EXPECT_NEAR(view.canvas().time() / view.canvas().length(), 0.5, 1e-9);
  view.canvas().grab();
  const MotionPart* last = nullptr;
  for (const MotionPart& part : view.canvas().picture().parts)
    if (part.time) last = &part;
  ASSERT_NE(last, nullptr);
  const Seconds there = *last->time;
  QTest::mouseClick(&view.canvas(), Qt::LeftButton, {}, last->area.center().toPoint());
  EXPECT_GE(view.canvas().time(), there);
  EXPECT_GT(slider->value(), slider->maximum() / 2);
}

TEST(MotionView, ASecondRunRunsInStep) {
  Window window;
  MotionView& view = motion_of(window);
  const RunId other = window.bench().document().runs.all().front().id;
  ASSERT_NE(other, window.bench().shown_run());
  view.show_beside(other);
  view.finish();
  ASSERT_EQ(view.canvas().tracks().size(), 2U);
  const double longest = std::max(view.canvas().tracks()[0].span.length().value(),
                                  view.canvas().tracks()[1].span.length().value());
  EXPECT_EQ(view.canvas().length().value(), longest);
  view.canvas().grab();
  EXPECT_EQ(view.canvas().picture().spoken.size(), 2U);
  EXPECT_EQ(view.tables().size(), 2U);
  // Of one kernel: the other run shows the kernels that do the same.
  view.show_kernel(1);
  for (const MovingTrack& t : view.canvas().tracks()) {
    ASSERT_TRUE(t.track.record) << t.track.problem;
    EXPECT_LT(t.span.length(), t.track.record->time());
  }
}

TEST(MotionView, AnSmSaysItsTile) {
  Window window;
  MotionView& view = motion_of(window);
  const auto& record = *view.canvas().tracks()[0].track.record;
  for (const RecordedPhase& p : record.phases) {
    if (p.units.empty()) continue;
    const RecordedStep& step = record.steps[p.first_step];
    view.canvas().set_time(step.start + 0.5 * step.time);
    break;
  }
  view.canvas().grab();
  const auto& parts = view.canvas().picture().parts;
  const auto sm =
      std::ranges::find_if(parts, [](const MotionPart& p) { return p.unit.has_value(); });
  ASSERT_NE(sm, parts.end());
  EXPECT_THAT(sm->tooltip, HasSubstr("columns"));
}

TEST(MotionView, EveryPartLiesInThePicture) {
  Window window;
  MotionView& view = motion_of(window);
  view.show_beside(window.bench().document().runs.all().front().id);
  view.finish();
  for (const QSize size : {QSize(300, 260), QSize(520, 400), QSize(900, 500), QSize(400, 800)}) {
    QImage image(size, QImage::Format_RGB32);
    QPainter painter(&image);
    const MotionPicture picture =
        draw_motion(painter, QRectF(QPointF(), size), view.canvas().tracks(), view.canvas().time(),
                    std::nullopt, Theme(light_palette()), QApplication::font());
    for (const MotionPart& part : picture.parts) {
      EXPECT_TRUE(QRectF(QPointF(), size).adjusted(-1, -1, 1, 1).contains(part.area))
          << size.width() << ": " << part.tooltip;
    }
  }
}

// In the smallest window that there is, with one run and with two in step: what has no room for its
// whole text has a brief one, and the whole can be pointed at.
TEST(MotionView, TheSmallestWindowHasRoomForEveryTitle) {
  Window window(test::window_document({"eager", "coda"}), {900, 600});
  window->reset_layout();
  window->resize(900, 600);
  MotionView& view = motion_of(window);
  ASSERT_EQ(window->size(), QSize(900, 600));
  const RunId eager = window.bench().document().runs.all().front().id;
  for (const bool two : {false, true}) {
    if (two) view.show_beside(eager);
    view.finish();
    ASSERT_EQ(view.canvas().tracks().size(), two ? 2U : 1U);
    for (int i = 0; i <= 100; ++i) {
      view.canvas().set_time(0.01 * i * view.canvas().length());
      view.canvas().grab();
      EXPECT_THAT(view.canvas().picture().elided, ::testing::IsEmpty())
          << (two ? "two runs, " : "one run, ") << i << " %, " << view.canvas().width() << " × "
          << view.canvas().height();
    }
  }
}

TEST(MotionView, AMeasuredRunSaysWhyItShowsNothing) {
  Document document = test::window_document({"eager"});
  document.runs.add({.policy = "eager",
                     .measurements = FUSELINE_SOURCE_DIR "/scenarios/measurements/h200-pytorch"});
  Window window(document);
  window.bench().show_run(document.runs.all().back().id);
  MotionView& view = motion_of(window);
  ASSERT_FALSE(view.canvas().tracks().empty());
  EXPECT_FALSE(view.canvas().tracks()[0].track.record);
}

}  // namespace
}  // namespace fuseline::gui
