// What nobody sees gives its memory up, and comes back as it was.
#include <gtest/gtest.h>

#include <QAbstractItemView>
#include <QComboBox>
#include <QScrollBar>
#include <QSlider>
#include <QTextBlock>
#include <QWindow>

#include "gui/widgets/charts/motion_view.h"
#include "gui/widgets/closed_popups.h"
#include "gui/widgets/code_edit.h"
#include "gui/widgets/code_view.h"
#include "tests/gui/widgets/window_support.h"

namespace fuseline::gui {
namespace {

using test::Window;

void bring_to_front(Window& window, const QString& id) {
  window->raise_view(id);
  window.settle();
}

TEST(PutAway, TilesInMotionKeepTheirTimeAndNoWalk) {
  Window window;
  bring_to_front(window, "motion");
  auto& view = *qobject_cast<MotionView*>(window->view("motion"));
  view.finish();
  auto* slider = view.findChild<QSlider*>("motion-time");
  slider->setValue(slider->maximum() * 7 / 10);
  ASSERT_EQ(view.canvas().tracks().size(), 1U);
  bring_to_front(window, "traffic");
  EXPECT_TRUE(view.canvas().tracks().empty());
  EXPECT_TRUE(view.tables().empty());
  EXPECT_FALSE(view.is_busy());
  bring_to_front(window, "motion");
  test::wait_until([&] { return view.canvas().tracks().size() == 1; });  // nobody asks for it
  EXPECT_NEAR(view.canvas().time() / view.canvas().length(), 0.7, 1e-9);
}

TEST(PutAway, TilesInMotionThatWereCancelledStayCancelled) {
  Window window;
  bring_to_front(window, "motion");
  auto& view = *qobject_cast<MotionView*>(window->view("motion"));
  view.finish();
  view.cancel();
  view.show_highlight({});
  EXPECT_FALSE(view.is_busy());
}

// A chart that says which pictures it holds.
class OpenedPlot : public Plot {
 public:
  using Plot::Plot;
  [[nodiscard]] int pictures() const { return mPaintBuffers.size(); }
};

TEST(PutAway, AHiddenChartMakesNoPictureOfItsNewSize) {
  test::application();
  OpenedPlot plot(nullptr);
  plot.resize(400, 300);
  plot.show();
  static_cast<void>(QTest::qWaitForWindowExposed(&plot));
  ASSERT_GT(plot.pictures(), 0);
  plot.give_up();  // as behind another tab, where Qt goes on to send it sizes
  ASSERT_EQ(plot.pictures(), 0);
  plot.resize(640, 480);
  EXPECT_EQ(plot.pictures(), 0);
  const QImage image = plot.grab().toImage();
  EXPECT_GT(plot.pictures(), 0);
  plot.replot();
  EXPECT_EQ(test::difference(image, plot.grab().toImage()), 0);
}

TEST(PutAway, AnEditorKeepsItsTextCursorAndPlace) {
  test::application();
  CodeEdit edit(nullptr);
  edit.resize(300, 200);
  edit.show();
  QString text;
  for (int i = 1; i <= 400; ++i) text += QString("line %1 of a text\n").arg(i);
  edit.show_text(text);
  QTextCursor cursor(edit.document());
  cursor.setPosition(text.indexOf("line 210"));
  cursor.setPosition(text.indexOf("line 212"), QTextCursor::KeepAnchor);
  edit.setTextCursor(cursor);
  const QString selected = cursor.selectedText();
  ASSERT_FALSE(selected.isEmpty());
  edit.light({211});
  edit.verticalScrollBar()->setValue(204);
  const QImage before = edit.grab().toImage();
  int told = 0;
  QObject::connect(&edit, &CodeEdit::typed, [&told] { ++told; });
  QObject::connect(&edit, &CodeEdit::line_changed, [&told] { ++told; });
  QObject::connect(&edit, &CodeEdit::line_ended, [&told] { ++told; });

  edit.put_away();
  EXPECT_EQ(edit.document()->blockCount(), 1) << "the lines are given up";
  EXPECT_EQ(edit.text(), text);
  edit.put_away();  // a second time changes nothing
  EXPECT_EQ(edit.text(), text);
  EXPECT_FALSE(edit.take_back());
  EXPECT_EQ(edit.toPlainText(), text);
  EXPECT_EQ(edit.textCursor().selectedText(), selected);
  EXPECT_EQ(edit.verticalScrollBar()->value(), 204);
  EXPECT_EQ(test::difference(before, edit.grab().toImage()), 0);

  edit.put_away();
  edit.show_text("another one");
  EXPECT_EQ(edit.document()->blockCount(), 1);
  EXPECT_TRUE(edit.take_back());
  EXPECT_EQ(edit.toPlainText(), "another one");
  EXPECT_FALSE(edit.take_back());
  EXPECT_EQ(told, 0) << "nobody typed and nobody moved the cursor";
}

TEST(PutAway, OtherColoursOfAnEditorAreNothingThatIsTyped) {
  test::application();
  CodeEdit edit(nullptr);
  edit.show();
  static_cast<void>(QTest::qWaitForWindowExposed(&edit));
  edit.show_text("block a\n  # a comment\n");
  int told = 0;
  QObject::connect(&edit, &CodeEdit::typed, [&told] { ++told; });
  edit.setPalette(dark_palette());
  edit.restyle();
  edit.put_away();
  edit.restyle();
  EXPECT_EQ(told, 0);
  edit.take_back();
  QTest::keyClicks(&edit, "x");
  EXPECT_EQ(told, 1) << "what is typed is told";
}

// A click on another tab leaves the keys where they were.
TEST(PutAway, AnEditorThatNobodySeesTakesNoKeys) {
  test::application();
  CodeEdit edit(nullptr);
  edit.show();
  static_cast<void>(QTest::qWaitForWindowExposed(&edit));
  edit.show_text("a text");
  edit.setFocus();
  ASSERT_TRUE(edit.hasFocus());
  int told = 0;
  QObject::connect(&edit, &CodeEdit::typed, [&told] { ++told; });
  edit.put_away();
  EXPECT_FALSE(edit.hasFocus());
  QTest::keyClicks(&edit, "lost");  // as if it had kept them
  EXPECT_EQ(told, 0);
  EXPECT_EQ(edit.text(), "a text");
  edit.take_back();
  EXPECT_EQ(edit.toPlainText(), "a text");
}

TEST(PutAway, TheCodeBehindAnotherTabComesBack) {
  Window window(test::window_document({"eager", "coda"}));
  bring_to_front(window, "code");
  auto& view = *qobject_cast<CodeView*>(window->view("code"));
  view.finish();
  const QString text = view.text().toPlainText(), program = view.program().toPlainText();
  ASSERT_FALSE(text.isEmpty());
  bring_to_front(window, "program");  // of the same tabs
  EXPECT_TRUE(view.text().toPlainText().isEmpty());
  EXPECT_FALSE(view.tables().front().rows.empty()) << "what is exported stays";
  bring_to_front(window, "code");
  EXPECT_EQ(view.text().toPlainText(), text);
  EXPECT_EQ(view.program().toPlainText(), program);
}

// A view that came out of sight without its dock's saying so.
TEST(PutAway, AWindowAtRestGivesUpWhatNobodySees) {
  Window window;
  bring_to_front(window, "motion");
  auto& view = *qobject_cast<MotionView*>(window->view("motion"));
  bring_to_front(window, "traffic");
  view.finish();  // as an export asks for it
  ASSERT_FALSE(view.canvas().tracks().empty());
  test::wait_until([&] { return view.canvas().tracks().empty(); });
  bring_to_front(window, "motion");
  test::wait_until([&] { return view.canvas().tracks().size() == 1; });
}

TEST(PutAway, AClosedListGivesItsWindowUpAndOpensAgain) {
  test::application();
  QComboBox box;
  box.addItems({"first", "second", "third"});
  box.show();
  static_cast<void>(QTest::qWaitForWindowExposed(&box));
  for (int time = 0; time < 3; ++time) {
    box.setCurrentIndex(0);
    box.showPopup();
    QWidget* list = box.view()->window();
    test::wait_until([&] { return list->isVisible(); });
    give_up_closed_popups();
    ASSERT_NE(list->windowHandle(), nullptr) << "it is open";
    QTest::keyClick(box.view(), Qt::Key_Down);
    QTest::keyClick(box.view(), Qt::Key_Return);
    test::wait_until([&] { return !list->isVisible(); });
    EXPECT_EQ(box.currentIndex(), 1);
    give_up_closed_popups();
    EXPECT_EQ(list->windowHandle(), nullptr);
  }
}

}  // namespace
}  // namespace fuseline::gui
