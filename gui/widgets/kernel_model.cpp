#include "gui/widgets/kernel_model.h"

#include <QBrush>
#include <QFont>
#include <algorithm>

#include "gui/model/glossary.h"
#include "gui/widgets/qt_text.h"

namespace fuseline::gui {

KernelModel::KernelModel(Part part, QObject* parent)
    : QAbstractTableModel(parent), part_(part), theme_(QPalette()) {}

void KernelModel::show(KernelTable table, const Theme& theme) {
  beginResetModel();
  table_ = std::move(table);
  theme_ = theme;
  lit_.clear();
  endResetModel();
}

void KernelModel::set_theme(const Theme& theme) {
  theme_ = theme;
  if (rowCount() > 0) emit dataChanged(index(0, 0), index(rowCount() - 1, columnCount() - 1));
}

void KernelModel::show_highlight(const std::set<std::size_t>& launches) {
  if (lit_ == launches) return;
  lit_ = launches;
  if (rowCount() == 0) return;
  emit dataChanged(index(0, 0), index(rowCount() - 1, columnCount() - 1), {Qt::BackgroundRole});
}

int KernelModel::row_of(std::size_t launch) const {
  const auto found = std::ranges::find(table_.lines, launch, &KernelLine::kernel);
  return found == table_.lines.end() ? -1 : static_cast<int>(found - table_.lines.begin());
}

const Thing& KernelModel::thing(int row) const {
  return table_.lines[static_cast<std::size_t>(row)].thing;
}

const std::vector<KernelCell>& KernelModel::cells(int row) const {
  return part_ == Part::total ? table_.total : table_.lines[static_cast<std::size_t>(row)].cells;
}

int KernelModel::rowCount(const QModelIndex& parent) const {
  if (parent.isValid()) return 0;
  if (part_ == Part::total) return table_.total.empty() ? 0 : 1;
  return static_cast<int>(table_.lines.size());
}

int KernelModel::columnCount(const QModelIndex& parent) const {
  return parent.isValid() ? 0 : static_cast<int>(table_.columns.size());
}

QVariant KernelModel::data(const QModelIndex& index, int role) const {
  if (!checkIndex(index, CheckIndexOption::IndexIsValid)) return {};
  const auto column = static_cast<std::size_t>(index.column());
  const KernelCell& cell = cells(index.row())[column];
  const KernelColumn& about = table_.columns[column];
  switch (role) {
    case Qt::DisplayRole:
      return to_qt(cell.text);
    case Qt::ToolTipRole: {
      const std::string term =
          about.key == "bound" ? explain_term("bound: " + cell.text) : std::string();
      return to_qt(!cell.tooltip.empty() ? cell.tooltip : !term.empty() ? term : cell.text);
    }
    case Qt::TextAlignmentRole:
      return static_cast<int>((about.is_number ? Qt::AlignRight : Qt::AlignLeft) |
                              Qt::AlignVCenter);
    case Qt::ForegroundRole:
      return cell.colour == Colour{} ? QVariant() : QBrush(theme_.colour(cell.colour));
    case Qt::BackgroundRole: {
      if (part_ == Part::total) return QBrush(theme_.surface());
      if (!lit_.contains(table_.lines[static_cast<std::size_t>(index.row())].kernel)) return {};
      QColor c = theme_.colour(ColourRole::highlight);
      c.setAlpha(40);
      return QBrush(c);
    }
    case Qt::FontRole: {
      if (part_ != Part::total) return {};
      QFont bold;
      bold.setWeight(QFont::DemiBold);
      return bold;
    }
    case Qt::UserRole:
      return about.is_number ? QVariant(cell.sort_key) : to_qt(cell.text);
    default:
      return {};
  }
}

QVariant KernelModel::headerData(int section, Qt::Orientation orientation, int role) const {
  if (orientation != Qt::Horizontal || section < 0 || section >= columnCount()) return {};
  const KernelColumn& about = table_.columns[static_cast<std::size_t>(section)];
  switch (role) {
    case Qt::DisplayRole:
      return to_qt(about.header);
    case Qt::ToolTipRole:
      return to_qt(about.tooltip);
    case Qt::TextAlignmentRole:
      return static_cast<int>((about.is_number ? Qt::AlignRight : Qt::AlignLeft) |
                              Qt::AlignVCenter);
    default:
      return {};
  }
}

}  // namespace fuseline::gui
