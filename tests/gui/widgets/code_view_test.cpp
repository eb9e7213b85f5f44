// From program to CUDA in the window, under real input events.
#include "gui/widgets/code_view.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <QComboBox>
#include <QLabel>
#include <QTextBlock>

#include "gui/widgets/code_edit.h"
#include "tests/gui/widgets/window_support.h"

namespace fuseline::gui {
namespace {

using test::Window;
using ::testing::HasSubstr;

CodeView& code_of(Window& window) {
  window->raise_view("code");
  window.settle();
  auto& view = *qobject_cast<CodeView*>(window->view("code"));
  view.finish();
  return view;
}

void select_kernel(Window& window, CodeView& view, const std::string& name) {
  const RunView* run = window.bench().results().find(window.bench().shown_run());
  for (std::size_t i = 0; i < run->result->kernels.size(); ++i)
    if (run->result->kernels[i].estimate.name == name)
      window.session().select(kernel_thing(run->run.id, i));
  window.settle();
  view.finish();
}

int line_of(const CodeEdit& edit, const QString& text) {
  for (QTextBlock block = edit.document()->begin(); block.isValid(); block = block.next())
    if (block.text().contains(text) && !block.text().startsWith("//"))
      return block.blockNumber() + 1;
  return 0;
}

std::set<int> lit_lines(const CodeEdit& edit) {
  std::set<int> lines;
  for (const QTextEdit::ExtraSelection& mark : edit.extraSelections())
    lines.insert(mark.cursor.blockNumber() + 1);
  return lines;
}

TEST(CodeView, LightsWhatALineOfTheProgramBecame) {
  Window window(test::window_document({"eager", "coda"}));
  CodeView& view = code_of(window);
  select_kernel(window, view, "gate_up");
  EXPECT_THAT(view.code().title, HasSubstr("gate_up of coda"));
  // With the keyboard, from the program's first line down to the one of SwiGLU.
  view.program().setFocus();
  const int swiglu = line_of(view.program(), "swiglu(");
  ASSERT_GT(swiglu, 1);
  for (int i = 1; i < swiglu; ++i) QTest::keyClick(&view.program(), Qt::Key_Down);
  EXPECT_TRUE(lit_lines(view.text()).contains(line_of(view.text(), "swiglu(y1)")));
  EXPECT_FALSE(lit_lines(view.text()).contains(line_of(view.text(), "using Gemm")));
  // And back: a click into the CUDA text.
  view.text().scroll_to(line_of(view.text(), "store_tile("));
  QTextCursor at(
      view.text().document()->findBlockByNumber(line_of(view.text(), "store_tile(") - 1));
  QTest::mouseClick(view.text().viewport(), Qt::LeftButton, {},
                    view.text().cursorRect(at).center());
  EXPECT_EQ(lit_lines(view.program()), std::set<int>{line_of(view.program(), "store act")});
}

TEST(CodeView, ShowsTheOtherInstructionSet) {
  Window window(test::window_document({"eager", "coda"}));
  CodeView& view = code_of(window);
  select_kernel(window, view, "gate_up");
  EXPECT_THAT(view.text().toPlainText().toStdString(), HasSubstr("gemm_sm90.cuh"));
  auto* target = view.findChild<QComboBox*>("code-target");
  target->setFocus();
  QTest::keyClick(target, Qt::Key_Down);
  view.finish();
  EXPECT_THAT(view.text().toPlainText().toStdString(), HasSubstr("gemm_sm80.cuh"));
}

TEST(CodeView, SaysWhatIsMissingForMachineCode) {
  const QByteArray before = qgetenv("FUSELINE_DISASSEMBLER");
  qputenv("FUSELINE_DISASSEMBLER", "echo 'it reads no such code' >&2; false");
  Window window(test::window_document({"eager", "coda"}));
  CodeView& view = code_of(window);
  select_kernel(window, view, "swiglu");
  view.show_level(CodeLevel::sass);
  view.finish();
  EXPECT_TRUE(view.text().toPlainText().isEmpty());
  const QString said = view.findChild<QLabel*>("code-note")->text();
  EXPECT_TRUE(said.contains("it reads no such code") || said.contains("no CUDA toolkit"))
      << said.toStdString();
  if (before.isNull())
    qunsetenv("FUSELINE_DISASSEMBLER");
  else
    qputenv("FUSELINE_DISASSEMBLER", before);
}

}  // namespace
}  // namespace fuseline::gui
