// The kernels of the shown run as a table that sorts, with the totals below.
#pragma once

#include "gui/widgets/kernel_model.h"
#include "gui/widgets/view.h"

class QLabel;
class QSortFilterProxyModel;
class QTableView;

namespace fuseline::gui {

class KernelView : public View {
  Q_OBJECT
 public:
  KernelView(Workbench& bench, QWidget* parent);

  [[nodiscard]] QString id() const override { return "kernels"; }
  [[nodiscard]] QString title() const override { return tr("Kernels"); }
  [[nodiscard]] QString hint() const override;
  void refresh() override;
  void show_highlight(const Highlight& highlight) override;
  void restyle() override;
  void paint_to(QPainter& painter, QSize size) override;
  [[nodiscard]] std::vector<Table> tables() const override;
  [[nodiscard]] KernelModel& model() const { return *lines_; }
  [[nodiscard]] QTableView& table() const { return *table_; }

 private:
  bool filling_ = false;
  KernelModel* lines_;
  KernelModel* total_;
  QSortFilterProxyModel* sorted_;
  QTableView* table_;
  QTableView* totals_;
  QLabel* problem_;
  std::string shown_;  // name of the run
  bool sized_ = false;
};

}  // namespace fuseline::gui
