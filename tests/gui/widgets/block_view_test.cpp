// The editor of a block's text under real input events.
#include "gui/widgets/block_view.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <QAction>
#include <QComboBox>
#include <QScrollBar>
#include <QToolButton>

#include "base/data_files.h"
#include "gui/widgets/code_edit.h"
#include "tests/gui/widgets/window_support.h"

namespace fuseline::gui {
namespace {

using test::Window;
using ::testing::HasSubstr;

BlockView& block_of(Window& window) {
  window->raise_view("block");
  window.settle();
  return *qobject_cast<BlockView*>(window->view("block"));
}

QToolButton& button(BlockView& view, const char* name) {
  return *view.findChild<QToolButton*>(name);
}

// Puts the cursor behind the first such word.
void go_behind(CodeEdit& edit, const QString& word) {
  const int at = edit.toPlainText().indexOf(word);
  ASSERT_GE(at, 0) << word.toStdString();
  QTextCursor cursor = edit.textCursor();
  cursor.setPosition(at + word.size());
  edit.setTextCursor(cursor);
}

TEST(BlockView, MarksAMistakeWhileItIsTypedAndPredictsWhenItIsGone) {
  Window window;
  BlockView& view = block_of(window);
  CodeEdit& edit = view.edit();
  EXPECT_EQ(edit.toPlainText().toStdString(), view.shown().original);
  const RunId run = window.bench().document().runs.all().front().id;
  const Flops before = window.totals(run).flops;

  go_behind(edit, "= swiglu");
  QTest::keyClicks(&edit, "x");
  EXPECT_TRUE(button(view, "block-problem").isVisible());
  EXPECT_THAT(button(view, "block-problem").text().toStdString(), HasSubstr("Line "));
  EXPECT_FALSE(edit.extraSelections().isEmpty());
  window.settle();
  EXPECT_EQ(window.totals(run).flops, before);

  QTest::keyClick(&edit, Qt::Key_Backspace);
  EXPECT_FALSE(button(view, "block-problem").isVisible());
  EXPECT_TRUE(edit.extraSelections().isEmpty());
  EXPECT_FALSE(button(view, "block-reset").isEnabled());

  go_behind(edit, "norm2: xn2 = rms_norm(h");
  QTest::keyClick(&edit, Qt::Key_Backspace);
  QTest::keyClicks(&edit, "x");
  EXPECT_FALSE(button(view, "block-problem").isVisible());
  window.settle();
  EXPECT_THAT(window.bench().results().find(run)->result->block->model.title, HasSubstr("edited"));
  EXPECT_TRUE(button(view, "block-reset").isEnabled());
}

TEST(BlockView, UndoIsTheWindowsAndResetIsAStep) {
  Window window;
  BlockView& view = block_of(window);
  const QString original = view.edit().toPlainText();
  go_behind(view.edit(), "# LLaMA-like");
  QTest::keyClicks(&view.edit(), " indeed");
  const QString typed = view.edit().toPlainText();
  EXPECT_TRUE(typed.contains("LLaMA-like indeed"));
  QTest::keyClick(&view.edit(), Qt::Key_Z, Qt::ControlModifier);
  EXPECT_EQ(view.edit().toPlainText(), original) << "a word is one step";
  window->action("redo")->trigger();
  EXPECT_EQ(view.edit().toPlainText(), typed);
  button(view, "block-reset").click();
  EXPECT_EQ(view.edit().toPlainText(), original);
  window->action("undo")->trigger();
  EXPECT_EQ(view.edit().toPlainText(), typed);
  EXPECT_TRUE(window->isWindowModified());
}

TEST(BlockView, SavesWhatIsThenPredicted) {
  Window window;
  BlockView& view = block_of(window);
  go_behind(view.edit(), "# LLaMA-like");
  QTest::keyClicks(&view.edit(), " mine");
  const std::filesystem::path file = window.folder() / "mine.block";
  view.save_as(file);
  EXPECT_EQ(read_input_file(file), view.edit().toPlainText().toStdString());
  EXPECT_EQ(view.findChild<QComboBox*>("block-choice")->currentText(), "mine.block");
  EXPECT_FALSE(button(view, "block-reset").isEnabled());
  view.save_as(window.folder() / "mine.txt");
  EXPECT_THAT(test::take_failure(*window).toStdString(), HasSubstr(".block"));
}

TEST(BlockView, GoesToTheMistakeAndShowsAnotherBlock) {
  Window window;
  BlockView& view = block_of(window);
  go_behind(view.edit(), "residual2: y = h + d");
  QTest::keyClicks(&view.edit(), "q");
  go_behind(view.edit(), "fuseline");
  button(view, "block-problem").click();
  EXPECT_THAT(view.edit().textCursor().block().text().toStdString(), HasSubstr("residual2"));
  auto* choice = view.findChild<QComboBox*>("block-choice");
  const int other = choice->findData("gemma2");
  ASSERT_GE(other, 0);
  emit choice->activated(other);
  window.settle();
  EXPECT_TRUE(view.edit().toPlainText().contains("block gemma2"));
  EXPECT_FALSE(button(view, "block-problem").isVisible());
}

TEST(BlockView, FormatsStandBesideTheModelAndSayWhyNot) {
  Window window;
  window->raise_view("setup");
  auto* kv = window->findChild<QComboBox*>("setup-kv");
  auto* weights = window->findChild<QComboBox*>("setup-weights");
  ASSERT_NE(kv, nullptr);
  ASSERT_NE(weights, nullptr);
  EXPECT_EQ(weights->currentText(), "bf16");
  weights->showPopup();
  QCoreApplication::processEvents();
  const int int4 = weights->findData("int4");
  ASSERT_GE(int4, 0);
  weights->hidePopup();
  const RunId run = window.bench().document().runs.all().front().id;
  const Bytes before = window.totals(run).hbm_read;
  emit weights->activated(int4);
  window.settle();
  EXPECT_EQ(weights->currentText(), "int4");
  EXPECT_LT(window.totals(run).hbm_read, before);
  window->action("undo")->trigger();
  EXPECT_EQ(weights->currentText(), "bf16");
}

// Nothing is cut off: neither buttons in a narrow dock, nor the text in a picture.
TEST(BlockView, FitsIntoASmallWindow) {
  for (const QSize size : {QSize(900, 600), QSize(1240, 800)}) {
    Window window(test::window_document(), size);
    BlockView& view = block_of(window);
    for (const char* name : {"block-save", "block-reset"}) {
      const QToolButton& b = button(view, name);
      EXPECT_TRUE(view.rect().contains(b.geometry())) << name;
      EXPECT_GE(b.width(), b.sizeHint().width()) << name;
    }
    EXPECT_GT(view.edit().viewport()->height(), 60);
  }
}

}  // namespace
}  // namespace fuseline::gui
