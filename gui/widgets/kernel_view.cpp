#include "gui/widgets/kernel_view.h"

#include <QHeaderView>
#include <QLabel>
#include <QPainter>
#include <QScrollBar>
#include <QSortFilterProxyModel>
#include <QStyledItemDelegate>
#include <QTableView>
#include <QVBoxLayout>
#include <algorithm>
#include <numeric>

#include "gui/widgets/qt_text.h"

namespace fuseline::gui {

namespace {

constexpr int kWidestText = 260;

// Room between a number on the right and a text on the left of the next column.
class Padded : public QStyledItemDelegate {
 public:
  using QStyledItemDelegate::QStyledItemDelegate;

  void paint(QPainter* painter, const QStyleOptionViewItem& option,
             const QModelIndex& index) const override {
    QStyleOptionViewItem o = option;
    initStyleOption(&o, index);
    const QStyle& style = *o.widget->style();
    style.drawPrimitive(QStyle::PE_PanelItemViewItem, &o, painter, o.widget);
    o.rect.adjust(kPadding, 0, -kPadding, 0);
    o.backgroundBrush = Qt::NoBrush;
    style.drawControl(QStyle::CE_ItemViewItem, &o, painter, o.widget);
  }
  [[nodiscard]] QSize sizeHint(const QStyleOptionViewItem& option,
                               const QModelIndex& index) const override {
    return QStyledItemDelegate::sizeHint(option, index) + QSize(2 * kPadding, 0);
  }

 private:
  static constexpr int kPadding = 4;
};

void set_up(QTableView& table) {
  table.setItemDelegate(new Padded(&table));
  table.setShowGrid(false);
  table.setWordWrap(false);
  table.setFrameShape(QFrame::NoFrame);
  table.setSelectionBehavior(QAbstractItemView::SelectRows);
  table.setSelectionMode(QAbstractItemView::SingleSelection);
  table.setEditTriggers(QAbstractItemView::NoEditTriggers);
  table.setHorizontalScrollMode(QAbstractItemView::ScrollPerPixel);
  table.verticalHeader()->hide();
  const int height = QFontMetrics(table.font()).height() + 7;
  table.verticalHeader()->setDefaultSectionSize(height);
  table.verticalHeader()->setMinimumSectionSize(height);
}

// Columns as wide as their texts, for pictures.
std::vector<double> widths_of(const KernelTable& table, const QFontMetricsF& metrics) {
  std::vector<double> widths;
  for (std::size_t c = 0; c < table.columns.size(); ++c) {
    double w = metrics.horizontalAdvance(to_qt(table.columns[c].header));
    for (const KernelLine& line : table.lines) {
      w = std::max(w, metrics.horizontalAdvance(to_qt(line.cells[c].text)));
    }
    if (c < table.total.size()) {
      w = std::max(w, metrics.horizontalAdvance(to_qt(table.total[c].text)) * 1.08);
    }
    widths.push_back(w == 0 ? 0 : w + 18);
  }
  return widths;
}

// The widest column, of the operators' names, gives way down to 60 % before letters get smaller.
void give_way(std::vector<double>& widths, double room) {
  const double all = std::accumulate(widths.begin(), widths.end(), 0.0);
  if (widths.empty() || all <= room) return;
  double& widest = *std::ranges::max_element(widths);
  widest = std::max(widest * 0.6, widest - (all - room));
}

bool is_empty_column(const KernelTable& table, std::size_t c) {
  return std::ranges::all_of(table.lines,
                             [c](const KernelLine& line) { return line.cells[c].text.empty(); });
}

}  // namespace

KernelView::KernelView(Workbench& workbench, QWidget* parent)
    : View(workbench, parent),
      lines_(new KernelModel(KernelModel::Part::lines, this)),
      total_(new KernelModel(KernelModel::Part::total, this)),
      sorted_(new QSortFilterProxyModel(this)),
      table_(new QTableView(this)),
      totals_(new QTableView(this)),
      problem_(new QLabel(this)) {
  sorted_->setSourceModel(lines_);
  sorted_->setSortRole(Qt::UserRole);
  table_->setModel(sorted_);
  table_->setObjectName("kernel-table");
  table_->setAccessibleName(tr("Kernels of the shown run"));
  totals_->setModel(total_);
  totals_->setObjectName("kernel-totals");
  set_up(*table_);
  set_up(*totals_);
  table_->setSortingEnabled(true);
  table_->sortByColumn(0, Qt::AscendingOrder);
  table_->setMouseTracking(true);
  table_->horizontalHeader()->setHighlightSections(false);
  table_->horizontalHeader()->setSectionsMovable(false);
  totals_->horizontalHeader()->hide();
  totals_->setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
  totals_->setVerticalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
  totals_->setSelectionMode(QAbstractItemView::NoSelection);
  totals_->setFocusPolicy(Qt::NoFocus);
  totals_->setFixedHeight(totals_->verticalHeader()->defaultSectionSize() + 2);
  problem_->setWordWrap(true);
  problem_->setMargin(16);
  problem_->setAlignment(Qt::AlignTop);
  auto* column = new QVBoxLayout(this);
  column->setContentsMargins(0, 0, 0, 0);
  column->setSpacing(0);
  column->addWidget(problem_, 1);
  column->addWidget(table_, 1);
  column->addWidget(totals_);
  setFocusProxy(table_);

  connect(table_, &QTableView::entered, this, [this](const QModelIndex& index) {
    emit hovered(lines_->thing(sorted_->mapToSource(index).row()));
  });
  connect(table_->selectionModel(), &QItemSelectionModel::currentRowChanged, this,
          [this](const QModelIndex& now) {
            if (filling_) return;  // the table, and no person, chose another row
            if (now.isValid()) emit selected(lines_->thing(sorted_->mapToSource(now).row()));
          });
  connect(table_->horizontalHeader(), &QHeaderView::sectionResized, this,
          [this](int section, int, int size) { totals_->setColumnWidth(section, size); });
  connect(table_->horizontalScrollBar(), &QScrollBar::valueChanged, totals_->horizontalScrollBar(),
          &QScrollBar::setValue);
}

QString KernelView::hint() const {
  return tr(
      "One line for each launch of the shown run; a click on a header sorts. Differences are "
      "to the baseline's kernels of the same work.");
}

void KernelView::refresh() {
  const Results& results = bench().results();
  const RunView* view = results.find(bench().shown_run());
  if (view == nullptr) return;
  shown_ = view->label();
  KernelTable table = kernel_table(results, view->run.id);
  const QString problem = to_qt(table.problem);
  problem_->setText(problem);
  problem_->setVisible(!problem.isEmpty());
  table_->setVisible(problem.isEmpty());
  totals_->setVisible(problem.isEmpty());
  filling_ = true;
  total_->show(table, theme());
  lines_->show(std::move(table), theme());
  filling_ = false;
  for (int c = 0; c < lines_->columnCount(); ++c) {
    const bool empty = is_empty_column(lines_->table(), static_cast<std::size_t>(c));
    table_->setColumnHidden(c, empty);
    totals_->setColumnHidden(c, empty);
  }
  if (!sized_ && lines_->rowCount() > 0) {
    table_->resizeColumnsToContents();
    for (int c = 0; c < lines_->columnCount(); ++c) {
      const int total = static_cast<QAbstractItemView*>(totals_)->sizeHintForColumn(c);
      table_->setColumnWidth(c, std::min(std::max(table_->columnWidth(c), total) + 6, kWidestText));
    }
    sized_ = true;
  }
  for (int c = 0; c < lines_->columnCount(); ++c) {
    totals_->setColumnWidth(c, table_->columnWidth(c));
  }
}

void KernelView::show_highlight(const Highlight& highlight) {
  const RunId run = bench().shown_run();
  const auto found = highlight.kernels.find(run);
  lines_->show_highlight(found == highlight.kernels.end() ? std::set<std::size_t>()
                                                          : found->second);
  const Thing& chosen = bench().selection().selected;
  if (chosen.kind != ThingKind::kernel || chosen.run != run) return;
  const int row = lines_->row_of(chosen.kernel);
  if (row < 0) return;
  const QModelIndex index = sorted_->mapFromSource(lines_->index(row, 0));
  if (table_->currentIndex().row() == index.row()) return;
  filling_ = true;
  table_->setCurrentIndex(index);
  filling_ = false;
}

void KernelView::restyle() {
  lines_->set_theme(theme());
  total_->set_theme(theme());
}

void KernelView::paint_to(QPainter& painter, QSize size) {
  constexpr double kMargin = 14;
  const Theme t = theme();
  painter.fillRect(QRect(QPoint(), size), t.background());
  painter.setFont(heading_font(font()));
  painter.setPen(t.colour(ColourRole::text));
  const double head = QFontMetricsF(painter.font()).height() + 2 * kMargin;
  painter.drawText(QRectF(kMargin, 0, size.width() - 2 * kMargin, head),
                   Qt::AlignLeft | Qt::AlignVCenter, tr("Kernels of %1").arg(to_qt(shown_)));
  const KernelTable& table = lines_->table();
  if (!table.problem.empty()) {
    painter.setFont(font());
    painter.drawText(QRectF(kMargin, head, size.width() - 2 * kMargin, size.height() - head),
                     Qt::TextWordWrap, to_qt(table.problem));
    return;
  }
  const QFontMetricsF metrics(font());
  std::vector<double> widths = widths_of(table, metrics);
  give_way(widths, size.width() - 2 * kMargin);
  double all = 0;
  for (std::size_t c = 0; c < widths.size(); ++c) all += is_empty_column(table, c) ? 0 : widths[c];
  const double row = metrics.height() + 7;
  const double rows = static_cast<double>(table.lines.size()) + 2;
  const double scale = std::min({1.6, (size.width() - 2 * kMargin) / std::max(1.0, all),
                                 (size.height() - head - kMargin) / (rows * row)});
  painter.save();
  painter.translate(kMargin, head);
  painter.scale(scale, scale);
  painter.setFont(font());
  const auto draw = [&](double y, std::size_t c, double x, const QString& text, QColor colour) {
    painter.setPen(colour);
    const auto side = table.columns[c].is_number ? Qt::AlignRight : Qt::AlignLeft;
    painter.drawText(QRectF(x + 6, y, widths[c] - 12, row),
                     static_cast<int>(side | Qt::AlignVCenter),
                     metrics.elidedText(text, Qt::ElideRight, widths[c] - 10));
  };
  const auto for_columns = [&](const auto& what) {
    double x = 0;
    for (std::size_t c = 0; c < widths.size(); ++c) {
      if (is_empty_column(table, c)) continue;
      what(c, x);
      x += widths[c];
    }
  };
  for_columns([&](std::size_t c, double x) {
    draw(0, c, x, to_qt(table.columns[c].header), t.colour(ColourRole::muted));
  });
  painter.setPen(QPen(t.outline(), 1));
  painter.drawLine(QPointF(0, row), QPointF(all, row));
  double y = row;
  for (std::size_t i = 0; i < table.lines.size(); ++i, y += row) {
    if (i % 2 == 1) painter.fillRect(QRectF(0, y, all, row), t.surface());
    for_columns([&](std::size_t c, double x) {
      const KernelCell& cell = table.lines[i].cells[c];
      draw(y, c, x, to_qt(cell.text), t.colour(cell.colour));
    });
  }
  painter.setPen(QPen(t.outline(), 1));
  painter.drawLine(QPointF(0, y), QPointF(all, y));
  QFont bold = font();
  bold.setWeight(QFont::DemiBold);
  painter.setFont(bold);
  for_columns([&](std::size_t c, double x) {
    if (c < table.total.size()) {
      draw(y, c, x, to_qt(table.total[c].text), t.colour(table.total[c].colour));
    }
  });
  painter.restore();
}

std::vector<Table> KernelView::tables() const { return {to_table(lines_->table())}; }

}  // namespace fuseline::gui
