// The list of runs for Qt's views.
#pragma once

#include <QAbstractTableModel>
#include <set>
#include <vector>

#include "gui/model/run_rows.h"
#include "gui/widgets/session.h"
#include "gui/widgets/theme.h"

namespace fuseline::gui {

class RunModel : public QAbstractTableModel {
  Q_OBJECT
 public:
  enum Column : std::uint8_t { name, time, time_delta, hbm, hbm_delta, launches, kColumns };
  RunModel(Session& session, QObject* parent);

  void refresh(const Theme& theme);
  void show_highlight(const std::set<RunId>& runs);
  [[nodiscard]] const RunRow& row(int index) const {
    return rows_[static_cast<std::size_t>(index)];
  }
  [[nodiscard]] int row_of(RunId id) const;  // -1 when there is none

  [[nodiscard]] int rowCount(const QModelIndex& parent = {}) const override;
  [[nodiscard]] int columnCount(const QModelIndex& parent = {}) const override;
  [[nodiscard]] QVariant data(const QModelIndex& index, int role) const override;
  bool setData(const QModelIndex& index, const QVariant& value, int role) override;  // renames
  [[nodiscard]] Qt::ItemFlags flags(const QModelIndex& index) const override;
  [[nodiscard]] QVariant headerData(int section, Qt::Orientation orientation,
                                    int role) const override;

 private:
  [[nodiscard]] QVariant text(const RunRow& row, int column) const;

  Session& session_;
  std::vector<RunRow> rows_;
  std::set<RunId> lit_;
  Theme theme_;
};

}  // namespace fuseline::gui
