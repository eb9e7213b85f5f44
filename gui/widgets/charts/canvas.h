// How marks look: what the layers of a chart share while it is drawn.
#pragma once

#include <QFont>
#include <QPointF>
#include <QRectF>

#include "gui/widgets/charts/scene.h"
#include "gui/widgets/theme.h"

class QPainter;

namespace fuseline::gui {

inline constexpr double kLargestRadius = 13;  // of points, px
inline constexpr double kLeastRadius = 3.5;

double radius_of(const Mark& mark);

// Of a font the same in pixels, so that it is as large in every picture.
QFont in_pixels(const QFont& font);

struct Look {
  QColor fill;
  QColor line;
  bool dim = false;
  bool lit = false;  // highlighted: outlined
};
Look look_of(const Mark& mark, const Theme& theme, bool any_lit, bool lit);

// Each draws one mark at its place in pixels.
void draw_bar(QPainter& p, const QRectF& area, const Mark& mark, const Look& look,
              const Theme& theme);
void draw_point(QPainter& p, const QPointF& at, const Mark& mark, const Look& look,
                const Theme& theme);
void draw_arrow(QPainter& p, const QPointF& from, const QPointF& to, const QColor& colour,
                double width, bool dashed);

// In the bar, if it fits.
void draw_bar_label(QPainter& p, const QRectF& area, const Mark& mark, const Look& look);
// On a quiet plate, readable over lines.
void draw_plated(QPainter& p, const QRectF& area, const QString& text, const QColor& colour,
                 const Theme& theme);
// A sample of the legend in the box.
void draw_swatch(QPainter& p, const QRectF& box, const LegendEntry& entry, const Theme& theme);

double text_width(const QFont& font, const QString& text);
double text_height(const QFont& font);

}  // namespace fuseline::gui
