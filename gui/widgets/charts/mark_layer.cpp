#include "gui/widgets/charts/mark_layer.h"

#include <QFontMetricsF>
#include <QPainterPath>
#include <algorithm>
#include <cmath>
#include <limits>

namespace fuseline::gui {

namespace {

constexpr double kReach = 6;        // of the mouse to thin marks, px
constexpr double kNameShare = 0.3;  // of the width that names of rows may take
constexpr double kLayerRowGap = 8;

double distance_to_line(const QPointF& p, const QPointF& a, const QPointF& b) {
  const QPointF d = b - a;
  const double length2 = QPointF::dotProduct(d, d);
  const double t =
      length2 > 0 ? std::clamp(QPointF::dotProduct(p - a, d) / length2, 0.0, 1.0) : 0.0;
  return QLineF(p, a + t * d).length();
}

}  // namespace

MarkLayer::MarkLayer(QCustomPlot* plot) : QCPLayerable(plot, QStringLiteral("main")) {}

void MarkLayer::applyDefaultAntialiasingHint(QCPPainter* painter) const {
  painter->setAntialiasing(true);
}

void MarkLayer::set_style(const Theme& theme, const QFont& font) {
  theme_ = theme;
  font_ = in_pixels(small_font(font));
  strong_font_ = font_;
  strong_font_.setWeight(QFont::Bold);
}

QPointF MarkLayer::pixel(Point at) const {
  return {parentPlot()->xAxis->coordToPixel(at.x), parentPlot()->yAxis->coordToPixel(at.y)};
}

QRectF MarkLayer::area_of(const Mark& mark) const {
  switch (mark.shape) {
    case Shape::point:
    case Shape::diamond: {
      const double r = radius_of(mark);
      return QRectF(-r, -r, 2 * r, 2 * r).translated(pixel(mark.from));
    }
    case Shape::curve:
    case Shape::area: {
      QPolygonF polygon;
      for (const Point& p : mark.path) polygon << pixel(p);
      return polygon.boundingRect();
    }
    default:
      return QRectF(pixel(mark.from), pixel(mark.to)).normalized();
  }
}

double MarkLayer::distance(const Mark& mark, const QPointF& at) const {
  switch (mark.shape) {
    case Shape::bar: {
      const QRectF area = area_of(mark);
      if (area.contains(at)) return 0;
      if (at.y() < area.top() || at.y() > area.bottom()) return kReach;
      // Bars thinner than the mouse can hit.
      return std::max(area.left() - at.x(), at.x() - area.right()) + 1;
    }
    case Shape::point:
    case Shape::diamond:
      return std::max(0.0, QLineF(at, pixel(mark.from)).length() - radius_of(mark));
    case Shape::line:
    case Shape::arrow:
      return 1 + distance_to_line(at, pixel(mark.from), pixel(mark.to));
    case Shape::curve: {
      double least = kReach;
      for (std::size_t i = 1; i < mark.path.size(); ++i) {
        least = std::min(least, distance_to_line(at, pixel(mark.path[i - 1]), pixel(mark.path[i])));
      }
      return 1 + least;
    }
    case Shape::area:
      return std::numeric_limits<double>::max();
  }
  return std::numeric_limits<double>::max();
}

std::optional<Hit> MarkLayer::hit(const QPointF& at) const {
  if (scene_ == nullptr || !scene_->problem.empty()) return std::nullopt;
  for (const Row& row : scene_->rows) {
    const QRectF area = row_name_area(row);
    if (area.contains(at)) return Hit{row.thing, row.tooltip, area};
  }
  if (!QRectF(parentPlot()->axisRect()->rect()).adjusted(-2, -2, 2, 2).contains(at)) {
    return std::nullopt;
  }
  const Mark* best = nullptr;
  double least = kReach;
  for (const Mark& mark : scene_->marks) {
    if (mark.tooltip.empty() && mark.thing.is_nothing()) continue;
    const double d = distance(mark, at);
    // Later marks are drawn over earlier ones.
    if (d > least || (d == kReach) || (d == least && best != nullptr && d > 0)) continue;
    best = &mark;
    least = d;
  }
  if (best == nullptr) return std::nullopt;
  return Hit{best->thing, best->tooltip, area_of(*best)};
}

QVector<Hit> MarkLayer::things() const {
  QVector<Hit> found;
  if (scene_ == nullptr || !scene_->problem.empty()) return found;
  for (const Row& row : scene_->rows) {
    if (!row.thing.is_nothing()) found.append({row.thing, row.tooltip, row_name_area(row)});
  }
  for (const Mark& mark : scene_->marks) {
    if (!mark.thing.is_nothing()) found.append({mark.thing, mark.tooltip, area_of(mark)});
  }
  return found;
}

bool MarkLayer::is_lit(const Mark& mark) const {
  return corresponds(highlight_, mark.thing, mark.operators);
}

QMargins MarkLayer::row_margins(int width) const {
  if (scene_ == nullptr || scene_->rows.empty() || !scene_->problem.empty()) return {};
  double left = 0, right = 0;
  for (const Row& row : scene_->rows) {
    const QFont& font = row.strong ? strong_font_ : font_;
    left = std::max(left, text_width(font, QString::fromStdString(row.text)));
    double w = text_width(strong_font_, QString::fromStdString(row.result));
    if (!row.result_note.empty()) {
      w += kLayerRowGap + text_width(font_, QString::fromStdString(row.result_note));
    }
    right = std::max(right, w);
  }
  left = std::min(left, kNameShare * width);
  const bool headed = std::ranges::any_of(scene_->marks, is_upright_with_label);
  return {static_cast<int>(left + kLayerRowGap) + 1,
          headed ? static_cast<int>(text_height(font_)) + 2 : 0,
          static_cast<int>(right > 0 ? right + kLayerRowGap : 0) + 1, 0};
}

QRectF MarkLayer::row_name_area(const Row& row) const {
  const QRectF axes = parentPlot()->axisRect()->rect();
  const double y = pixel({0, row.at}).y();
  const double h = std::abs(pixel({0, 1}).y() - pixel({0, 0}).y());
  return {0, y - h / 2, axes.left(), h};
}

void MarkLayer::draw(QCPPainter* painter) {
  if (scene_ == nullptr || !theme_) return;
  QPainter& p = *painter;
  p.setFont(font_);
  if (!scene_->problem.empty()) {
    draw_problem(p);
    return;
  }
  const QRectF axes = parentPlot()->axisRect()->rect();
  const bool any_lit = std::any_of(scene_->marks.begin(), scene_->marks.end(),
                                   [this](const Mark& m) { return is_lit(m); });
  p.save();
  p.setClipRect(axes.adjusted(-1, -1, 1, 1));
  for (const bool quiet : {true, false}) {
    for (const Mark& mark : scene_->marks) {
      if (mark.quiet == quiet) draw_mark(p, mark, any_lit);
    }
  }
  for (const Mark& mark : scene_->marks) {  // outlines last, over neighbours
    if (mark.shape != Shape::bar || !is_lit(mark)) continue;
    p.setPen(QPen(theme_->colour(ColourRole::highlight), 2));
    p.setBrush(Qt::NoBrush);
    p.drawRect(area_of(mark).adjusted(0, -1, 0, 1));
  }
  const double above = scene_->rows.empty() ? 0 : text_height(font_) + 2;  // labels of limits
  const double beside = above > 0 ? parentPlot()->viewport().right() - axes.right() : 0;
  p.setClipRect(axes.adjusted(-1, -1 - above, 1 + beside, 1));
  draw_labels(p, any_lit);
  p.restore();
  draw_rows(p);
}

void MarkLayer::draw_problem(QPainter& p) const {
  const QRectF area = QRectF(parentPlot()->viewport()).adjusted(24, 24, -24, -24);
  p.setPen(theme_->colour(ColourRole::muted));
  p.drawText(area, int(Qt::AlignCenter) | int(Qt::TextWordWrap),
             QString::fromStdString(scene_->problem));
}

void MarkLayer::draw_mark(QPainter& p, const Mark& mark, bool any_lit) const {
  const Look look = look_of(mark, *theme_, any_lit && !mark.thing.is_nothing(), is_lit(mark));
  const double width = mark.quiet ? 1.2 : 2;
  switch (mark.shape) {
    case Shape::bar: {
      QRectF area = area_of(mark);
      if (area.width() < 1) area.setWidth(1);
      draw_bar(p, area, mark, look, *theme_);
      draw_bar_label(p, area, mark, look);
      break;
    }
    case Shape::line:
      p.setPen(QPen(look.line, width, mark.dashed ? Qt::DashLine : Qt::SolidLine));
      p.drawLine(pixel(mark.from), pixel(mark.to));
      break;
    case Shape::arrow:
      draw_arrow(p, pixel(mark.from), pixel(mark.to), look.line, width, mark.dashed);
      break;
    case Shape::curve:
    case Shape::area: {
      QPolygonF polygon;
      for (const Point& at : mark.path) polygon << pixel(at);
      if (mark.shape == Shape::area) {
        QColor fill = look.fill;
        fill.setAlphaF(mark.quiet ? 0.14 : 0.3);
        p.setPen(Qt::NoPen);
        p.setBrush(fill);
        p.drawPolygon(polygon);
      } else {
        p.setPen(QPen(look.line, look.lit ? 3 : width, mark.dashed ? Qt::DashLine : Qt::SolidLine,
                      Qt::RoundCap, Qt::RoundJoin));
        p.setBrush(Qt::NoBrush);
        p.drawPolyline(polygon);
      }
      break;
    }
    case Shape::point:
    case Shape::diamond:
      draw_point(p, pixel(mark.from), mark, look, *theme_);
      break;
  }
}

}  // namespace fuseline::gui
