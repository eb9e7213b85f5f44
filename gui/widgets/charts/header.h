// The strip above a chart: its title and, below it, the legend in as many lines as it takes.
#pragma once

#include <qcustomplot.h>

#include "gui/widgets/charts/canvas.h"

namespace fuseline::gui {

class Header : public QCPLayoutElement {
 public:
  explicit Header(QCustomPlot* plot) : QCPLayoutElement(plot) {}

  // For pictures of that width, px; sets the height.
  void arrange(const Scene& scene, const Theme& theme, const QFont& font, int width,
               bool with_legend);

 protected:
  void draw(QCPPainter* painter) override;

 private:
  struct Placed {
    LegendEntry entry;
    QPointF at;  // from the strip's corner
  };
  QString title_;
  QVector<Placed> legend_;
  QFont title_font_, legend_font_;
  std::optional<Theme> theme_;
};

// The lines under a chart.
class Footer : public QCPLayoutElement {
 public:
  explicit Footer(QCustomPlot* plot) : QCPLayoutElement(plot) {}
  void arrange(const Scene& scene, const Theme& theme, const QFont& font, int width);

 protected:
  void draw(QCPPainter* painter) override;

 private:
  QString text_;
  QFont font_;
  QColor colour_;
};

}  // namespace fuseline::gui
