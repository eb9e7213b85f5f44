// The kernel table for Qt's views. Role UserRole sorts: numbers by their exact value.
#pragma once

#include <QAbstractTableModel>
#include <set>

#include "gui/model/kernel_table.h"
#include "gui/widgets/theme.h"

namespace fuseline::gui {

class KernelModel : public QAbstractTableModel {
  Q_OBJECT
 public:
  // The lines of the table, or its line of totals.
  enum class Part : std::uint8_t { lines, total };
  KernelModel(Part part, QObject* parent);

  void show(KernelTable table, const Theme& theme);
  void set_theme(const Theme& theme);
  // Launches that are highlighted.
  void show_highlight(const std::set<std::size_t>& launches);
  [[nodiscard]] const KernelTable& table() const { return table_; }
  [[nodiscard]] int row_of(std::size_t launch) const;  // -1 when there is none
  [[nodiscard]] const Thing& thing(int row) const;

  [[nodiscard]] int rowCount(const QModelIndex& parent = {}) const override;
  [[nodiscard]] int columnCount(const QModelIndex& parent = {}) const override;
  [[nodiscard]] QVariant data(const QModelIndex& index, int role) const override;
  [[nodiscard]] QVariant headerData(int section, Qt::Orientation orientation,
                                    int role) const override;

 private:
  [[nodiscard]] const std::vector<KernelCell>& cells(int row) const;

  Part part_;
  KernelTable table_;
  std::set<std::size_t> lit_;
  Theme theme_;
};

}  // namespace fuseline::gui
