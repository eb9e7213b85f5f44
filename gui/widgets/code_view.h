// From program to CUDA to the GPU's instructions: the program of a kernel, and below it the text
// that is made of it. A line of one lights those of the other.
#pragma once

#include <optional>
#include <set>

#include "gui/model/kernel_code.h"
#include "gui/widgets/charts/background.h"
#include "gui/widgets/view.h"

class QComboBox;
class QLabel;

namespace fuseline::gui {

class CodeEdit;

// A property of the application: the program that compiles kernels when it is started with
// cuda::kCompileOption. Without one, the window compiles in its own process.
constexpr const char* kCompilerProperty = "fuseline-compiler";

class CodeView : public View {
  Q_OBJECT
 public:
  CodeView(Workbench& bench, QWidget* parent);

  [[nodiscard]] QString id() const override { return "code"; }
  [[nodiscard]] QString title() const override { return tr("Code"); }
  [[nodiscard]] QString hint() const override;
  void refresh() override;
  void show_highlight(const Highlight& highlight) override;
  void restyle() override;
  void prepare() override { refresh(); }
  void finish() override { work_.finish(); }
  [[nodiscard]] bool is_busy() const override { return work_.is_busy(); }
  void cancel() override;
  void put_away() override;
  void paint_to(QPainter& painter, QSize size) override;
  [[nodiscard]] std::vector<Table> tables() const override;

  [[nodiscard]] const KernelCode& code() const { return code_; }
  [[nodiscard]] CodeEdit& program() const { return *program_; }
  [[nodiscard]] CodeEdit& text() const { return *text_; }
  void show_level(CodeLevel level);

 private:
  void fill_kernels(const RunView& view, std::size_t launch);
  void ask();
  void take(KernelCode code);
  void light_code(int program_line);
  void light_program(int code_line);

  QComboBox *kernels_, *target_, *level_;
  CodeEdit *program_, *text_;
  QLabel* note_;
  KernelCode code_;
  std::optional<CodeQuestion> asked_;
  Thing selected_;  // that it was asked for
  bool target_chosen_ = false;
  int lit_program_ = 1;
  Background<CodeQuestion, KernelCode> work_;
};

}  // namespace fuseline::gui
