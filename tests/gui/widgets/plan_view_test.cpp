// The editor of a plan under real input events.
#include "gui/widgets/plan_view.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <QAction>
#include <QLabel>
#include <QListWidget>
#include <QToolButton>

#include "gui/widgets/code_edit.h"
#include "tests/gui/widgets/window_support.h"

namespace fuseline::gui {
namespace {

using test::Window;
using ::testing::HasSubstr;

Document small() {
  Document d = test::window_document({"eager", "coda"});
  d.setup.model = "tinyllama";
  d.setup.workload.seq = 256;
  return d;
}

PlanView& plan_of(Window& window) {
  window->raise_view("plan");
  window.settle();
  auto& view = *qobject_cast<PlanView*>(window->view("plan"));
  view.finish();
  return view;
}

void settle(Window& window, PlanView& view) {
  view.finish();
  window.settle();
  view.finish();
}

void go_to_end_of(CodeEdit& edit, const QString& word) {
  const int at = edit.toPlainText().indexOf(word);
  ASSERT_GE(at, 0) << word.toStdString();
  QTextCursor cursor = edit.textCursor();
  cursor.setPosition(at + word.size());
  edit.setTextCursor(cursor);
}

TEST(PlanView, TypingMakesARunThatIsPredicted) {
  Window window(small());
  PlanView& view = plan_of(window);
  const std::size_t runs = window.bench().document().runs.all().size();
  EXPECT_THAT(view.edit().toPlainText().toStdString(), HasSubstr("plan coda"));
  EXPECT_TRUE(view.checked().problems.empty());

  go_to_end_of(view.edit(), "rsqrt(m1");
  QTest::keyClicks(&view.edit(), "1");  // there is no m11
  settle(window, view);
  ASSERT_EQ(window.bench().document().runs.all().size(), runs + 1);
  const RunId own = window.bench().shown_run();
  EXPECT_EQ(window.bench().document().runs.at(own).name, "plan from coda");
  auto* problems = view.findChild<QListWidget*>("plan-problems");
  EXPECT_TRUE(problems->isVisible());
  EXPECT_THAT(problems->item(0)->text().toStdString(), HasSubstr("m11"));
  EXPECT_THAT(view.findChild<QLabel*>("plan-numbers")->text().toStdString(),
              HasSubstr("of the last right text"));
  EXPECT_FALSE(view.edit().extraSelections().isEmpty());
  EXPECT_TRUE(window.bench().results().find(own)->ok());

  QTest::keyClick(&view.edit(), Qt::Key_Backspace);
  settle(window, view);
  EXPECT_FALSE(problems->isVisible());
  EXPECT_TRUE(view.edit().extraSelections().isEmpty());
  EXPECT_EQ(window.bench().document().runs.at(own).plan_draft, "");
  EXPECT_THAT(view.findChild<QLabel*>("plan-numbers")->text().toStdString(),
              HasSubstr("than eager"));
}

TEST(PlanView, ARunThatUndoTookWhileNobodySawTheViewTakesNoText) {
  Window window(small());
  PlanView& view = plan_of(window);
  const std::size_t runs = window.bench().document().runs.all().size();
  go_to_end_of(view.edit(), "rsqrt(m1");
  QTest::keyClicks(&view.edit(), "1");
  settle(window, view);
  ASSERT_EQ(window.bench().document().runs.all().size(), runs + 1);
  window->raise_view("kernels");  // of the same tabs
  window.settle();
  window.session().act([](Workbench& bench) { bench.undo(); });
  window.settle();
  ASSERT_EQ(window.bench().document().runs.all().size(), runs);
  EXPECT_NO_THROW(emit view.edit().typed("typed late"));
  EXPECT_EQ(window.bench().document().runs.all().size(), runs);
}

TEST(PlanView, ARightChangeChangesThePrediction) {
  Window window(small());
  PlanView& view = plan_of(window);
  // Given the tensor behind the attention kept in fp32: twice the bytes.
  go_to_end_of(view.edit(), "activation attn[M,D] = [256, 2048], ");
  for (int i = 0; i < 4; ++i) QTest::keyClick(&view.edit(), Qt::Key_Delete);
  QTest::keyClicks(&view.edit(), "fp32");
  settle(window, view);
  const RunId own = window.bench().shown_run();
  if (!view.checked().problems.empty()) {
    // A rule may refuse the type there: it is said at a line, and the prediction stays.
    EXPECT_GT(view.checked().problems.front().line, 0);
    return;
  }
  EXPECT_GT(window.totals(own).hbm(),
            window.totals(window.bench().document().runs.find("coda")->id).hbm());
}

TEST(PlanView, UndoTakesTheRunAway) {
  Window window(small());
  PlanView& view = plan_of(window);
  const std::size_t runs = window.bench().document().runs.all().size();
  const QString before = view.edit().toPlainText();
  go_to_end_of(view.edit(), "plan coda");
  QTest::keyClicks(&view.edit(), " # a remark");
  settle(window, view);
  ASSERT_EQ(window.bench().document().runs.all().size(), runs + 1);
  while (window.bench().document().runs.all().size() > runs) window->action("undo")->trigger();
  settle(window, view);
  window.session().show_run(window.bench().document().runs.find("coda")->id);
  settle(window, view);
  EXPECT_EQ(view.edit().toPlainText(), before);
}

TEST(PlanView, IsSavedAndResetAndOpened) {
  Window window(small());
  PlanView& view = plan_of(window);
  const std::filesystem::path file = window.folder() / "mine.fuse";
  go_to_end_of(view.edit(), "plan coda");
  QTest::keyClicks(&view.edit(), "  # mine");
  settle(window, view);
  EXPECT_FALSE(view.findChild<QToolButton*>("plan-reset")->isEnabled());  // no file is behind it
  view.save_as(file);
  settle(window, view);
  EXPECT_EQ(view.shown().name, "mine.fuse");
  go_to_end_of(view.edit(), "# mine");
  QTest::keyClicks(&view.edit(), "s");
  settle(window, view);
  auto* reset = view.findChild<QToolButton*>("plan-reset");
  ASSERT_TRUE(reset->isEnabled());
  reset->click();
  settle(window, view);
  EXPECT_FALSE(view.shown().edited());
  const std::size_t runs = window.bench().document().runs.all().size();
  window->files().open(file);
  settle(window, view);
  EXPECT_EQ(window.bench().document().runs.all().size(), runs + 1);
}

TEST(PlanView, IsReachedByTheKeyboard) {
  Window window(small());
  PlanView& view = plan_of(window);
  for (QWidget* w : {static_cast<QWidget*>(&view.edit()),
                     static_cast<QWidget*>(view.findChild<QListWidget*>("plan-problems")),
                     static_cast<QWidget*>(view.findChild<QToolButton*>("plan-save"))}) {
    EXPECT_NE(w->focusPolicy() & Qt::TabFocus, 0) << w->objectName().toStdString();
  }
  EXPECT_FALSE(view.edit().accessibleName().isEmpty());
}

}  // namespace
}  // namespace fuseline::gui
