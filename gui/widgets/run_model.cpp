#include "gui/widgets/run_model.h"

#include <QBrush>
#include <QFont>
#include <QPainter>
#include <QPixmap>
#include <algorithm>
#include <array>

#include "gui/widgets/qt_text.h"

namespace fuseline::gui {

namespace {

// A square in the run's colour, hatched when it was measured.
QPixmap swatch(const RunRow& row, const Theme& theme) {
  constexpr int kSide = 12, kScale = 2;
  QPixmap pixmap(kSide * kScale, kSide * kScale);
  pixmap.setDevicePixelRatio(kScale);
  pixmap.fill(Qt::transparent);
  QPainter painter(&pixmap);
  const QColor c = theme.colour(row.colour);
  const QRectF area(0.5, 0.5, kSide - 1, kSide - 1);
  painter.setPen(c);
  painter.setBrush(row.measured ? QBrush(theme.background()) : QBrush(c));
  painter.drawRect(area);
  if (row.measured) hatch(painter, area, c, 4);
  return pixmap;
}

const std::array<const char*, RunModel::kColumns> kHeaders = {
    QT_TRANSLATE_NOOP("runs", "Run"), QT_TRANSLATE_NOOP("runs", "Time"),
    QT_TRANSLATE_NOOP("runs", "Δ"),   QT_TRANSLATE_NOOP("runs", "HBM"),
    QT_TRANSLATE_NOOP("runs", "Δ"),   QT_TRANSLATE_NOOP("runs", "Launches")};
const std::array<const char*, RunModel::kColumns> kTips = {
    QT_TRANSLATE_NOOP("runs", "Predictions are filled, measurements hatched; bold: the baseline"),
    QT_TRANSLATE_NOOP("runs", "Of one block"),
    QT_TRANSLATE_NOOP("runs", "Time against the baseline; less is better"),
    QT_TRANSLATE_NOOP("runs", "Bytes read from and written to HBM"),
    QT_TRANSLATE_NOOP("runs", "HBM traffic against the baseline; less is better"),
    QT_TRANSLATE_NOOP("runs", "Kernels launched")};

}  // namespace

RunModel::RunModel(Session& session, QObject* parent)
    : QAbstractTableModel(parent), session_(session), theme_(QPalette()) {}

void RunModel::refresh(const Theme& theme) {
  theme_ = theme;
  std::vector<RunRow> rows = run_rows(session_.bench().document(), session_.bench().results());
  const bool same = std::ranges::equal(rows, rows_, {}, &RunRow::id, &RunRow::id);
  if (same) {  // selection and scrolling stay
    rows_ = std::move(rows);
    if (!rows_.empty()) emit dataChanged(index(0, 0), index(rowCount() - 1, kColumns - 1));
    return;
  }
  beginResetModel();
  rows_ = std::move(rows);
  endResetModel();
}

void RunModel::show_highlight(const std::set<RunId>& runs) {
  if (lit_ == runs) return;
  lit_ = runs;
  if (rows_.empty()) return;
  emit dataChanged(index(0, 0), index(rowCount() - 1, kColumns - 1), {Qt::BackgroundRole});
}

int RunModel::row_of(RunId id) const {
  const auto found = std::ranges::find(rows_, id, &RunRow::id);
  return found == rows_.end() ? -1 : static_cast<int>(found - rows_.begin());
}

int RunModel::rowCount(const QModelIndex& parent) const {
  return parent.isValid() ? 0 : static_cast<int>(rows_.size());
}

int RunModel::columnCount(const QModelIndex& parent) const {
  return parent.isValid() ? 0 : kColumns;
}

QVariant RunModel::text(const RunRow& row, int column) const {
  switch (column) {
    case name:
      return to_qt(row.label);
    case time:
      return row.has_problem ? tr(row.missing ? "missing" : "problem") : to_qt(row.time);
    case time_delta:
      return to_qt(row.time_delta.relative_text);
    case hbm:
      return to_qt(row.hbm);
    case hbm_delta:
      return to_qt(row.hbm_delta.relative_text);
    case launches:
      return to_qt(row.launches);
    default:
      return {};
  }
}

QVariant RunModel::data(const QModelIndex& index, int role) const {
  if (!checkIndex(index, CheckIndexOption::IndexIsValid)) return {};
  const RunRow& row = rows_[static_cast<std::size_t>(index.row())];
  const int column = index.column();
  const bool is_delta = column == time_delta || column == hbm_delta;
  const Delta& delta = column == hbm_delta ? row.hbm_delta : row.time_delta;
  switch (role) {
    case Qt::DisplayRole:
      return text(row, column);
    case Qt::EditRole:
      return column == name ? to_qt(row.name) : text(row, column);
    case Qt::DecorationRole:
      return column == name ? swatch(row, theme_) : QVariant();
    case Qt::TextAlignmentRole:
      return static_cast<int>((column == name ? Qt::AlignLeft : Qt::AlignRight) | Qt::AlignVCenter);
    case Qt::ForegroundRole:
      if (is_delta && !delta.relative_text.empty()) return QBrush(theme_.colour(delta.colour));
      if (row.has_problem) {
        return QBrush(theme_.colour(row.missing ? ColourRole::muted : ColourRole::worse));
      }
      return {};
    case Qt::BackgroundRole: {
      if (!lit_.contains(row.id)) return {};
      QColor c = theme_.colour(ColourRole::highlight);
      c.setAlpha(36);
      return QBrush(c);
    }
    case Qt::FontRole: {
      if (!row.is_baseline) return {};
      QFont bold;
      bold.setWeight(QFont::DemiBold);
      return bold;
    }
    case Qt::ToolTipRole: {
      QStringList lines;
      if (is_delta && !delta.absolute_text.empty()) {
        lines << to_qt(delta.absolute_text + " (" + delta.relative_text + ")");
      }
      lines << to_qt(row.tooltip);
      if (!row.note.empty() && row.note != row.tooltip) lines << to_qt(row.note);
      if (row.is_baseline) lines << tr("the baseline");
      lines << (row.pinned ? tr("pinned: %1").arg(to_qt(row.machine)) : to_qt(row.machine));
      return lines.join('\n');
    }
    default:
      return {};
  }
}

bool RunModel::setData(const QModelIndex& index, const QVariant& value, int role) {
  if (role != Qt::EditRole || !index.isValid() || index.column() != name) return false;
  const RunId id = row(index.row()).id;
  const std::string text = from_qt(value.toString());
  // A view ends its editor while another row becomes the current one, and then goes on with a
  // reference to that row's index. Renaming fills the list anew and chooses a row, which would free
  // the index, so it waits until the view is done.
  const auto rename = [this, id, text] {
    if (row_of(id) >= 0) session_.act([&](Workbench& bench) { bench.rename_run(id, text); });
  };
  return QMetaObject::invokeMethod(this, rename, Qt::QueuedConnection);
}

Qt::ItemFlags RunModel::flags(const QModelIndex& index) const {
  Qt::ItemFlags flags = QAbstractTableModel::flags(index);
  if (index.column() == name) flags |= Qt::ItemIsEditable;
  return flags;
}

QVariant RunModel::headerData(int section, Qt::Orientation orientation, int role) const {
  if (orientation != Qt::Horizontal || section < 0 || section >= kColumns) return {};
  const auto at = static_cast<std::size_t>(section);
  if (role == Qt::DisplayRole) return tr(kHeaders[at]);
  if (role == Qt::ToolTipRole) return tr(kTips[at]);
  if (role == Qt::TextAlignmentRole) {
    return static_cast<int>((section == name ? Qt::AlignLeft : Qt::AlignRight) | Qt::AlignVCenter);
  }
  return {};
}

}  // namespace fuseline::gui
