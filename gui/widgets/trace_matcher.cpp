#include "gui/widgets/trace_matcher.h"

#include <QComboBox>
#include <QHeaderView>
#include <QLabel>
#include <QPushButton>
#include <QTableWidget>
#include <QVBoxLayout>
#include <algorithm>

#include "gui/model/text.h"
#include "gui/widgets/qt_text.h"

namespace fuseline::gui {

TraceMatcher::TraceMatcher(QWidget* parent)
    : QWidget(parent),
      table_(new QTableWidget(this)),
      kernel_(new QComboBox(this)),
      match_(new QPushButton(tr("Match"), this)),
      back_(new QPushButton(tr("Take back"), this)) {
  table_->setObjectName("trace-launches");
  table_->setAccessibleName(tr("Launches of the block, with the kernels that they are"));
  table_->setEditTriggers(QAbstractItemView::NoEditTriggers);
  table_->setSelectionBehavior(QAbstractItemView::SelectRows);
  table_->setFrameShape(QFrame::NoFrame);
  table_->setShowGrid(false);
  table_->verticalHeader()->hide();
  table_->setColumnCount(4);
  table_->setHorizontalHeaderLabels({tr("kernel of the plan"), tr("by"), tr("µs"), tr("launch")});
  table_->horizontalHeader()->setStretchLastSection(true);
  kernel_->setObjectName("trace-kernel");
  kernel_->setAccessibleName(tr("Kernel of the plan"));
  match_->setObjectName("trace-match");
  match_->setToolTip(tr("The chosen launches are this kernel of the plan"));
  back_->setObjectName("trace-take-back");
  back_->setToolTip(tr("Undo the last match by hand"));
  auto* row = new QHBoxLayout;
  row->setContentsMargins(8, 2, 8, 2);
  row->addWidget(new QLabel(tr("Chosen launches are"), this));
  row->addWidget(kernel_, 1);
  row->addWidget(match_);
  row->addWidget(back_);
  auto* column = new QVBoxLayout(this);
  column->setContentsMargins(0, 0, 0, 0);
  column->setSpacing(0);
  column->addLayout(row);
  column->addWidget(table_, 1);
  connect(table_, &QTableWidget::itemSelectionChanged, this, &TraceMatcher::show_choice);
  connect(match_, &QPushButton::clicked, this, [this] {
    const int row_of_plan = kernel_->currentData().toInt();
    emit matched(chosen(), row_of_plan < 0 ? std::nullopt
                                           : std::optional(static_cast<std::size_t>(row_of_plan)));
  });
  connect(back_, &QPushButton::clicked, this, &TraceMatcher::taken_back);
}

std::vector<std::size_t> TraceMatcher::chosen() const {
  std::vector<std::size_t> rows;
  for (const QModelIndex& index : table_->selectionModel()->selectedRows())
    rows.push_back(static_cast<std::size_t>(index.row()));
  std::ranges::sort(rows);
  return rows;
}

// The first chosen launch's kernel stands in the box.
void TraceMatcher::show_choice() {
  const std::vector<std::size_t> rows = chosen();
  match_->setEnabled(!rows.empty());
  if (rows.empty()) return;
  const QVariant kernel = table_->item(static_cast<int>(rows.front()), 0)->data(Qt::UserRole);
  kernel_->setCurrentIndex(std::max(0, kernel_->findData(kernel)));
}

void TraceMatcher::show_chart(const TraceChart& chart, bool can_go_back) {
  const std::vector<std::size_t> kept = chosen();
  kernel_->clear();
  kernel_->addItem(tr("no kernel of the plan"), -1);
  for (std::size_t i = 0; i < chart.rows.size(); ++i)
    kernel_->addItem(to_qt(chart.rows[i].kernel), static_cast<int>(i));
  table_->setRowCount(0);
  table_->setRowCount(static_cast<int>(chart.launches.size()));
  for (std::size_t i = 0; i < chart.launches.size(); ++i) {
    const TraceLaunch& l = chart.launches[i];
    const QStringList cells = {l.kernel ? to_qt(chart.rows[*l.kernel].kernel) : tr("none"),
                               to_qt(l.by), to_qt(short_time(l.time)), to_qt(l.name)};
    for (int c = 0; c < cells.size(); ++c) {
      auto* item = new QTableWidgetItem(cells[c]);
      item->setToolTip(cells[c]);
      if (c == 0) item->setData(Qt::UserRole, l.kernel ? static_cast<int>(*l.kernel) : -1);
      table_->setItem(static_cast<int>(i), c, item);
    }
  }
  for (const int column : {0, 1, 2}) table_->resizeColumnToContents(column);
  table_->resizeRowsToContents();
  for (const std::size_t row : kept)
    if (row < chart.launches.size())
      table_->selectionModel()->select(table_->model()->index(static_cast<int>(row), 0),
                                       QItemSelectionModel::Select | QItemSelectionModel::Rows);
  back_->setEnabled(can_go_back);
  show_choice();
}

}  // namespace fuseline::gui
