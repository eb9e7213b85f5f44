#include "gui/widgets/charts/canvas.h"

#include <QFontInfo>
#include <QFontMetricsF>
#include <QPainter>
#include <QPainterPath>
#include <cmath>

namespace fuseline::gui {

namespace {

void draw_disc(QPainter& p, const QPointF& at, double r, bool diamond) {
  if (!diamond) {
    p.drawEllipse(at, r, r);
    return;
  }
  const double d = r * 1.25;
  const QPointF corners[] = {at + QPointF(0, -d), at + QPointF(d, 0), at + QPointF(0, d),
                             at + QPointF(-d, 0)};
  p.drawPolygon(corners, 4);
}

}  // namespace

double radius_of(const Mark& mark) {
  return std::max(kLeastRadius, kLargestRadius * std::sqrt(mark.size));
}

QFont in_pixels(const QFont& font) {
  QFont f = font;
  f.setPixelSize(QFontInfo(font).pixelSize());
  return f;
}

double text_width(const QFont& font, const QString& text) {
  return QFontMetricsF(font).horizontalAdvance(text);
}
double text_height(const QFont& font) { return QFontMetricsF(font).height(); }

Look look_of(const Mark& mark, const Theme& theme, bool any_lit, bool lit) {
  Look look;
  const QColor own = theme.colour(mark.colour);
  look.fill = mark.measured ? mixed(own, theme.background(), 0.55) : own;
  look.line = own;
  look.lit = lit;
  look.dim = any_lit && !lit;
  if (look.dim) {
    look.fill = theme.faded(look.fill);
    look.line = theme.faded(look.line);
  }
  return look;
}

void draw_bar(QPainter& p, const QRectF& area, const Mark& mark, const Look& look,
              const Theme& theme) {
  p.setRenderHint(QPainter::Antialiasing, false);
  p.fillRect(area, look.fill);
  if (mark.measured) hatch(p, area, look.line, 5);
  if (area.width() > 3 && area.height() > 4) {
    // A hairline of the background tells neighbours of one colour apart.
    p.setPen(QPen(theme.background(), 1));
    p.drawLine(area.topLeft(), area.bottomLeft());
  }
  p.setRenderHint(QPainter::Antialiasing, true);
}

void draw_bar_label(QPainter& p, const QRectF& area, const Mark& mark, const Look& look) {
  if (mark.label.empty()) return;
  const QString text = QString::fromStdString(mark.label);
  const double w = text_width(p.font(), text), h = text_height(p.font());
  if (w + 8 > area.width() || h - 2 > area.height()) return;
  const QPointF c = area.center();
  const QRectF plate(c.x() - w / 2 - 3, c.y() - h / 2, w + 6, h);
  if (mark.measured) p.fillRect(plate.intersected(area), look.fill);
  p.setPen(ink_on(look.fill));
  p.drawText(plate, Qt::AlignCenter, text);
}

void draw_point(QPainter& p, const QPointF& at, const Mark& mark, const Look& look,
                const Theme& theme) {
  const double r = radius_of(mark);
  const bool diamond = mark.shape == Shape::diamond;
  if (mark.measured) {
    p.setBrush(theme.background());
    p.setPen(QPen(look.line, 2));
    draw_disc(p, at, r - 1, diamond);
  } else {
    p.setBrush(look.fill);
    p.setPen(QPen(theme.background(), 1));
    draw_disc(p, at, r, diamond);
  }
  if (look.lit) {
    p.setBrush(Qt::NoBrush);
    p.setPen(QPen(theme.colour(ColourRole::highlight), 2));
    draw_disc(p, at, r + 2, diamond);
  }
}

void draw_arrow(QPainter& p, const QPointF& from, const QPointF& to, const QColor& colour,
                double width, bool dashed) {
  const QLineF line(from, to);
  if (line.length() < 1) return;
  p.setPen(QPen(colour, width, dashed ? Qt::DashLine : Qt::SolidLine, Qt::FlatCap));
  const QPointF along = (to - from) / line.length();
  const QPointF across(-along.y(), along.x());
  const double head = std::min(4 + 2.5 * width, line.length());
  p.drawLine(from, to - along * head * 0.8);
  const QPointF corners[] = {to, to - along * head + across * head * 0.45,
                             to - along * head - across * head * 0.45};
  p.setPen(Qt::NoPen);
  p.setBrush(colour);
  p.drawPolygon(corners, 3);
}

void draw_plated(QPainter& p, const QRectF& area, const QString& text, const QColor& colour,
                 const Theme& theme) {
  QColor plate = theme.background();
  plate.setAlphaF(0.82);
  p.fillRect(area, plate);
  p.setPen(colour);
  p.drawText(area, Qt::AlignCenter, text);
}

void draw_swatch(QPainter& p, const QRectF& box, const LegendEntry& entry, const Theme& theme) {
  Mark mark;
  mark.colour = entry.colour;
  mark.size = 0.18;
  const QColor colour = theme.colour(entry.colour);
  const QPointF left(box.left(), box.center().y()), right(box.right(), box.center().y());
  p.setRenderHint(QPainter::Antialiasing, true);
  switch (entry.swatch) {
    case Swatch::hatched:
      mark.measured = true;
      [[fallthrough]];
    case Swatch::fill:
      draw_bar(p, box, mark, look_of(mark, theme, false, false), theme);
      break;
    case Swatch::line:
      p.setPen(QPen(colour, 2));
      p.drawLine(left, right);
      break;
    case Swatch::dashed:
      p.setPen(QPen(colour, 1.5, Qt::DashLine));
      p.drawLine(left, right);
      break;
    case Swatch::hollow:
      mark.measured = true;
      [[fallthrough]];
    case Swatch::dot:
      mark.shape = Shape::point;
      draw_point(p, box.center(), mark, look_of(mark, theme, false, false), theme);
      break;
    case Swatch::diamond:
      mark.shape = Shape::diamond;
      draw_point(p, box.center(), mark, look_of(mark, theme, false, false), theme);
      break;
    case Swatch::arrow:
      draw_arrow(p, left, right, colour, 1.5, false);
      break;
  }
}

}  // namespace fuseline::gui
