// Draws the marks and rows of a scene on the axes of a plot, and says what lies under the mouse.
#pragma once

#include <qcustomplot.h>

#include <optional>

#include "gui/widgets/charts/canvas.h"
#include "gui/widgets/charts/label_layout.h"

namespace fuseline::gui {

// What lies at a place: a mark, or the name of a row.
struct Hit {
  Thing thing;
  std::string tooltip;
  QRectF area;  // px
};

class MarkLayer : public QCPLayerable {
 public:
  explicit MarkLayer(QCustomPlot* plot);

  void set_scene(const Scene* scene) { scene_ = scene; }
  void set_style(const Theme& theme, const QFont& font);
  void set_highlight(const Highlight& highlight) { highlight_ = highlight; }
  [[nodiscard]] const Highlight& highlight() const { return highlight_; }

  // Room that the names and results of rows take beside the axes, for a plot of that width, px.
  [[nodiscard]] QMargins row_margins(int width) const;

  [[nodiscard]] std::optional<Hit> hit(const QPointF& at) const;
  // Every mark and row with a thing, in the order of the scene: what the keyboard steps through.
  [[nodiscard]] QVector<Hit> things() const;
  // Where a place of the chart is drawn, px.
  [[nodiscard]] QPointF pixel(Point at) const;
  [[nodiscard]] QRectF area_of(const Mark& mark) const;

 protected:
  void applyDefaultAntialiasingHint(QCPPainter* painter) const override;
  void draw(QCPPainter* painter) override;

 private:
  [[nodiscard]] QRectF row_name_area(const Row& row) const;
  [[nodiscard]] bool is_lit(const Mark& mark) const;
  [[nodiscard]] double distance(const Mark& mark, const QPointF& at) const;  // px; 0: within
  void draw_problem(QPainter& p) const;
  void draw_rows(QPainter& p) const;
  void draw_mark(QPainter& p, const Mark& mark, bool any_lit) const;
  void draw_line_label(QPainter& p, const Mark& mark, LabelLayout& layout) const;
  void draw_labels(QPainter& p, bool any_lit) const;

  const Scene* scene_ = nullptr;
  Highlight highlight_;
  std::optional<Theme> theme_;
  QFont font_, strong_font_;
};

// A limit: a line straight up with a text.
bool is_upright_with_label(const Mark& mark);

}  // namespace fuseline::gui
