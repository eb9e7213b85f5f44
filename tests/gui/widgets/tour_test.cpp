// The tour and the missions on the real window.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <QLabel>
#include <QListWidget>
#include <QPushButton>

#include "gui/widgets/charts/motion_view.h"
#include "gui/widgets/missions_view.h"
#include "gui/widgets/tour_guide.h"
#include "tests/gui/widgets/window_support.h"

namespace fuseline::gui {
namespace {

using test::Window;
using ::testing::HasSubstr;

// All of its time passes in little steps, as by the clock.
TEST(TourGuide, LeadsThroughTheWindowAndLeavesTheSessionAsItWas) {
  Window window;
  const Document before = window.bench().document();
  TourGuide& tour = window->tour();
  window->action("tour")->trigger();
  ASSERT_TRUE(tour.is_running());
  int steps = 0, longest = 0;
  bool fused = false, carried = false;
  for (double passed = 0; passed < kTourSeconds + 1; passed += 0.5) {
    if (tour.step() != longest) {
      ++steps;
      longest = tour.step();
      window.settle();
    }
    fused = fused || window.bench().document().runs.all().size() > before.runs.all().size();
    EXPECT_TRUE(window->rect().contains(tour.geometry())) << tour.step();
    tour.pass(0.5);
    carried = carried || window->graph().drag().is_active();
  }
  EXPECT_EQ(longest + 1, static_cast<int>(tour_steps().size()));
  EXPECT_TRUE(fused);
  EXPECT_TRUE(carried);
  QTest::mouseClick(tour.findChild<QPushButton*>("tour-next"), Qt::LeftButton);
  EXPECT_FALSE(tour.is_running());
  EXPECT_FALSE(tour.isVisible());
  window.settle();
  EXPECT_EQ(window.bench().document(), before);
  EXPECT_FALSE(qobject_cast<MotionView*>(window->view("motion"))->is_playing());
}

TEST(TourGuide, WaitsWhilePausedAndGoesBackByKeys) {
  Window window;
  TourGuide& tour = window->tour();
  tour.start();
  QTest::keyClick(&tour, Qt::Key_Right);
  EXPECT_EQ(tour.step(), 1);
  QTest::keyClick(&tour, Qt::Key_Space);
  tour.pass(60);
  EXPECT_EQ(tour.step(), 1);
  QTest::keyClick(&tour, Qt::Key_Left);
  EXPECT_EQ(tour.step(), 0);
  QTest::keyClick(&tour, Qt::Key_Escape);
  EXPECT_FALSE(tour.is_running());
}

// An edit of a person during the tour is theirs.
TEST(TourGuide, DoesNotUndoWhatAPersonDid) {
  Window window;
  TourGuide& tour = window->tour();
  tour.start();
  tour.pause(true);
  for (std::size_t i = 0; i < tour_steps().size(); ++i)
    if (tour_steps()[i].act == TourAct::fuse_edge) tour.go_to(static_cast<int>(i));
  window.settle();
  window.session().act([](Workbench& bench) { bench.set_title("mine"); });
  const Document mine = window.bench().document();
  tour.end();
  window.settle();
  EXPECT_EQ(window.bench().document(), mine);
}

TEST(MissionsView, AMissionIsStartedReachedAndRemembered) {
  Window window;
  window->raise_view("missions");
  auto& view = *qobject_cast<MissionsView*>(window->view("missions"));
  view.choose("first-fusion");
  const auto now = [&] { return view.findChild<QLabel*>("mission-now")->text().toStdString(); };
  EXPECT_EQ(now(), "Not started");
  QTest::mouseClick(view.findChild<QPushButton*>("mission-hint"), Qt::LeftButton);
  EXPECT_THAT(view.findChild<QLabel*>("mission-text")->text().toStdString(), HasSubstr("plus"));
  QTest::mouseClick(view.findChild<QPushButton*>("mission-start"), Qt::LeftButton);
  window.settle();
  ASSERT_TRUE(view.is_on());
  EXPECT_THAT(now(), HasSubstr("nothing is fused"));
  window.click_edge({"down", "residual2"});
  window.click_edge({"oproj", "residual1"});
  EXPECT_THAT(now(), HasSubstr("Done. "));
  EXPECT_TRUE(view.was_done("first-fusion"));
  EXPECT_THAT(view.findChild<QListWidget*>("mission-list")->item(0)->text().toStdString(),
              HasSubstr("✓"));
  // The next window knows it too.
  MissionsView again(window.session(), window.folder(), nullptr);
  EXPECT_TRUE(again.was_done("first-fusion"));
}

}  // namespace
}  // namespace fuseline::gui
