// The program of the selected kernel, and why its neighbours are or are not in it.
#pragma once

#include "gui/model/kernel_table.h"
#include "gui/widgets/view.h"

class QTextBrowser;

namespace fuseline::gui {

class ProgramView : public View {
  Q_OBJECT
 public:
  ProgramView(Workbench& bench, QWidget* parent);

  [[nodiscard]] QString id() const override { return "program"; }
  [[nodiscard]] QString title() const override { return tr("Program"); }
  [[nodiscard]] QString hint() const override;
  void refresh() override;
  void show_highlight(const Highlight& highlight) override;
  void restyle() override;
  void paint_to(QPainter& painter, QSize size) override;
  [[nodiscard]] std::vector<Table> tables() const override;
  [[nodiscard]] const ProgramText& program() const { return program_; }

 private:
  [[nodiscard]] QString html() const;

  QTextBrowser* text_;
  ProgramText program_;
  Thing shown_;  // the kernel
  Thing asked_;  // the selection that it was shown for
};

}  // namespace fuseline::gui
