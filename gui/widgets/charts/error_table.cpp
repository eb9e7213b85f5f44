#include "gui/widgets/charts/error_table.h"

#include <QFontMetricsF>
#include <QHeaderView>
#include <QPainter>
#include <algorithm>

#include "gui/model/text.h"
#include "gui/widgets/charts/canvas.h"

namespace fuseline::gui {

namespace {

Colour colour_of(bool meets, bool has_target) {
  if (!has_target) return {ColourRole::text, 0};
  return {meets ? ColourRole::better : ColourRole::worse, 3};
}

QString shown(const ErrorGrid::Cell& cell) { return QString::fromStdString(cell.text); }

}  // namespace

ErrorGrid error_grid(const ValidationChart& chart) {
  ErrorGrid grid;
  if (chart.errors.empty()) {
    grid.header = {"run", "quantity", "error"};
    for (const Scatter& s : chart.scatters) {
      for (const ScatterPoint& p : s.points) {
        grid.rows.push_back(
            {{p.label}, {s.title}, {signed_percent_text(p.error), colour_of(p.inside_band, true)}});
      }
    }
    return grid;
  }
  grid.header = {"mean error (bias)"};
  for (const std::string& p : chart.predictors) grid.header.push_back(p);
  grid.header.emplace_back("target");
  for (const ErrorLine& line : chart.errors) {
    std::vector<ErrorGrid::Cell> row{{line.what}};
    for (std::size_t i = 0; i < line.cells.size(); ++i) {
      row.push_back({line.cells[i], colour_of(line.meets_target[i], line.target.has_value())});
    }
    row.push_back(
        {line.target ? std::to_string(static_cast<int>(100 * *line.target + 0.5)) + " %" : "–",
         {ColourRole::muted, 0}});
    grid.rows.push_back(std::move(row));
  }
  return grid;
}

ErrorTableWidget::ErrorTableWidget(QWidget* parent) : QTableWidget(parent) {
  setEditTriggers(QAbstractItemView::NoEditTriggers);
  verticalHeader()->hide();
  setShowGrid(false);
  setAlternatingRowColors(true);
  setFrameShape(QFrame::NoFrame);
  setAccessibleName(tr("Errors"));
}

void ErrorTableWidget::set_grid(ErrorGrid grid, const Theme& theme) {
  grid_ = std::move(grid);
  clear();
  setColumnCount(static_cast<int>(grid_.header.size()));
  setRowCount(static_cast<int>(grid_.rows.size()));
  QStringList header;
  for (const std::string& h : grid_.header) header.append(QString::fromStdString(h));
  setHorizontalHeaderLabels(header);
  for (int r = 0; r < rowCount(); ++r) {
    const auto& row = grid_.rows[static_cast<std::size_t>(r)];
    for (int c = 0; c < static_cast<int>(row.size()); ++c) {
      const ErrorGrid::Cell& cell = row[static_cast<std::size_t>(c)];
      auto* item = new QTableWidgetItem(shown(cell));
      item->setForeground(theme.colour(cell.colour));
      item->setToolTip(item->text());
      setItem(r, c, item);
    }
  }
  resizeColumnsToContents();
  resizeRowsToContents();
}

void ErrorTableWidget::paint_on(QPainter& painter, const QRect& area, const Theme& theme,
                                const QFont& font) const {
  if (grid_.rows.empty()) return;
  painter.save();
  QFont small = in_pixels(small_font(font));
  QFont bold = small;
  bold.setWeight(QFont::Bold);
  const std::size_t columns = grid_.header.size();
  std::vector<double> widths(columns);
  for (std::size_t c = 0; c < columns; ++c) {
    widths[c] = text_width(bold, QString::fromStdString(grid_.header[c]));
    for (const auto& row : grid_.rows)
      widths[c] = std::max(widths[c], text_width(small, shown(row[c])));
    widths[c] += 14;
  }
  double rest = 0;
  for (std::size_t c = 1; c < columns; ++c) rest += widths[c];
  // The first column gives way, the others are short numbers.
  const double inner = area.width() - 16;
  widths[0] = std::max(0.25 * inner, std::min(widths[0], inner - rest));
  const double line = text_height(small) + 6;
  double y = area.top() + 8;
  const auto draw_line = [&](auto&& text_of, const QFont& line_font, auto&& colour_at) {
    double x = area.left() + 8;
    painter.setFont(line_font);
    const QFontMetricsF metrics(line_font);
    for (std::size_t c = 0; c < columns; ++c) {
      painter.setPen(theme.colour(colour_at(c)));
      painter.drawText(QRectF(x, y, widths[c] - 8, line),
                       int(Qt::AlignLeft) | int(Qt::AlignVCenter),
                       metrics.elidedText(text_of(c), Qt::ElideRight, widths[c] - 8));
      x += widths[c];
    }
    y += line;
  };
  draw_line([&](std::size_t c) { return QString::fromStdString(grid_.header[c]); }, bold,
            [](std::size_t) {
              return Colour{ColourRole::text, 0};
            });
  painter.setPen(QPen(theme.outline(), 1));
  painter.drawLine(QPointF(area.left() + 8, y), QPointF(area.right() - 8, y));
  y += 2;
  for (std::size_t r = 0; r < grid_.rows.size(); ++r) {
    if (y + 2 * line > area.bottom() && r + 1 < grid_.rows.size()) {
      painter.setFont(small);
      painter.setPen(theme.colour(ColourRole::muted));
      painter.drawText(QPointF(area.left() + 8, y + line - 6),
                       tr("and %1 more").arg(grid_.rows.size() - r));
      break;
    }
    if (r % 2 == 1) {
      painter.fillRect(QRectF(area.left() + 4, y, area.width() - 8, line), theme.surface());
    }
    draw_line([&](std::size_t c) { return shown(grid_.rows[r][c]); }, small,
              [&](std::size_t c) { return grid_.rows[r][c].colour; });
  }
  painter.restore();
}

}  // namespace fuseline::gui
