// The table of errors beside the scatter: what is judged, a column for each predictor, the target.
#pragma once

#include <QTableWidget>
#include <string>
#include <vector>

#include "gui/model/validation_chart.h"
#include "gui/widgets/theme.h"

class QPainter;

namespace fuseline::gui {

struct ErrorGrid {
  std::vector<std::string> header;
  struct Cell {
    std::string text;
    Colour colour{ColourRole::text, 0};
  };
  std::vector<std::vector<Cell>> rows;
};

// Of all judged cases; where only the runs of the session are judged, a row for each of them.
ErrorGrid error_grid(const ValidationChart& chart);

class ErrorTableWidget : public QTableWidget {
  Q_OBJECT
 public:
  explicit ErrorTableWidget(QWidget* parent);
  void set_grid(ErrorGrid grid, const Theme& theme);
  // Rows that have no room are left out, and the last line says how many.
  void paint_on(QPainter& painter, const QRect& area, const Theme& theme, const QFont& font) const;

 private:
  ErrorGrid grid_;
};

}  // namespace fuseline::gui
