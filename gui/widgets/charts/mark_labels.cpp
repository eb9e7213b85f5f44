// The texts of a chart's marks and rows.
#include <QFontMetricsF>
#include <algorithm>
#include <cmath>

#include "gui/widgets/charts/mark_layer.h"

namespace fuseline::gui {

namespace {

constexpr double kRowGap = 8;
constexpr int kImportant = 50;     // rank from which on a label is not left out
constexpr double kFurthest = 150;  // of a label from its mark, px

QRectF rotated_bounds(const QRectF& area, const QPointF& at, double degrees) {
  QTransform t;
  t.translate(at.x(), at.y());
  t.rotate(degrees);
  return t.mapRect(area);
}

}  // namespace

bool is_upright_with_label(const Mark& mark) {
  return mark.shape == Shape::line && !mark.label.empty() && mark.from.x == mark.to.x;
}

// Along a line and above it: upright lines have it beside their top end, or above the axes where
// rows of bars are below.
void MarkLayer::draw_line_label(QPainter& p, const Mark& mark, LabelLayout& layout) const {
  const QString text = QString::fromStdString(mark.label);
  const QRectF axes = parentPlot()->axisRect()->rect();
  QPointF a = pixel(mark.from), b = pixel(mark.to);
  if (a.x() > b.x()) std::swap(a, b);
  const double w = text_width(font_, text) + 4, h = text_height(font_);
  const QColor colour = theme_->colour(mark.colour);
  if (std::abs(b.x() - a.x()) < 1) {
    if (!scene_->rows.empty()) {
      const double x =
          std::clamp(a.x() - w / 2, axes.left(), std::max(axes.left(), axes.right() - w));
      draw_plated(p, QRectF(x, axes.top() - h - 1, w, h), text, colour, *theme_);
      return;
    }
    const double top = std::max(axes.top(), std::min(a.y(), b.y())) + 2;
    for (const double x : {a.x() + 3, a.x() - 3 - w}) {
      const QRectF area(x, top, w, h);
      if (area.left() < axes.left() || area.right() > axes.right()) continue;
      layout.keep_free(area);
      draw_plated(p, area, text, colour, *theme_);
      return;
    }
    return;
  }
  // The part inside of the axes.
  const double slope = (b.y() - a.y()) / (b.x() - a.x());
  const auto clip = [&](QPointF& end) {
    const double x = std::clamp(end.x(), axes.left(), axes.right());
    end = {x, a.y() + slope * (x - a.x())};
    const double y = std::clamp(end.y(), axes.top(), axes.bottom());
    if (slope != 0 && y != end.y()) end = {a.x() + (y - a.y()) / slope, y};
  };
  const QPointF a0 = a;
  QPointF start = a0, stop = b;
  clip(start);
  clip(stop);
  const QLineF line(start, stop);
  if (line.length() < w + 16) return;
  const double degrees = std::atan(slope) * 180 / M_PI;
  const bool flat = std::abs(slope) < 0.05;
  // Below lines that are second to another, and those at the top edge.
  const bool below = mark.dashed || (flat && start.y() - h - 3 < axes.top());
  // Flat roofs at their right end, sloped ones from the left, where there are fewer points; on the
  // other side of the line, or a line of text further down, where points are in the way.
  for (const double top : {below ? 2 : -h - 2, below ? -h - 2 : 2, h + 4}) {
    for (const double part : {0.0, 0.25, 0.5, 0.75, 1.0}) {
      const double room = line.length() - w - 16;
      const double from = 8 + room * (flat ? 1 - part : part);
      const QPointF at = line.pointAt(from / line.length());
      const QRectF own(0, top, w, h);
      const QRectF bounds = rotated_bounds(own, at, degrees);
      // A sloped text takes much less than its bounds: thin pieces along it are kept free.
      if (!(flat ? layout.is_free(bounds) : axes.contains(bounds))) continue;
      for (int piece = 0; piece < 8; ++piece) {
        layout.keep_free(rotated_bounds(QRectF(piece * w / 8, top, w / 8, h), at, degrees));
      }
      p.save();
      p.translate(at);
      p.rotate(degrees);
      p.setPen(colour);
      p.drawText(own, Qt::AlignCenter, text);
      p.restore();
      return;
    }
  }
}

void MarkLayer::draw_labels(QPainter& p, bool any_lit) const {
  LabelLayout layout(QRectF(parentPlot()->axisRect()->rect()).adjusted(1, 1, -1, -1));
  QVector<const Mark*> wanted;
  for (const Mark& mark : scene_->marks) {
    const bool disc = mark.shape == Shape::point || mark.shape == Shape::diamond;
    if (disc) layout.keep_free(area_of(mark).adjusted(1, 1, -1, -1));
  }
  for (const Mark& mark : scene_->marks) {
    if (mark.label.empty() || mark.shape == Shape::bar || mark.shape == Shape::area) continue;
    if (mark.shape == Shape::line) {
      draw_line_label(p, mark, layout);
    } else {
      wanted.append(&mark);
    }
  }
  // What is highlighted comes first, so that its name is there.
  std::stable_sort(wanted.begin(), wanted.end(), [this](const Mark* a, const Mark* b) {
    const bool lit_a = is_lit(*a), lit_b = is_lit(*b);
    return lit_a != lit_b ? lit_a : a->label_rank > b->label_rank;
  });
  for (const Mark* mark : wanted) {
    const QString text = QString::fromStdString(mark->label);
    const QSizeF size(text_width(font_, text) + 4, text_height(font_));
    QPointF at = pixel(mark->from);
    double radius = radius_of(*mark);
    if (mark->shape == Shape::arrow) {
      at = (at + pixel(mark->to)) / 2;
      radius = 2;
    } else if (mark->shape == Shape::curve) {
      if (mark->path.empty()) continue;
      at = pixel(mark->path.back());
      radius = 2;
    }
    auto place = layout.place(size, at, radius);
    // Important ones that have no room beside their mark lie further away, with a line to it.
    double away = radius;
    while (!place && mark->label_rank >= kImportant && away < kFurthest) {
      away += text_height(font_);
      place = layout.place(size, at, away);
    }
    if (!place) continue;
    const bool dim = any_lit && !is_lit(*mark);
    const QColor colour = theme_->colour(dim ? ColourRole::muted : ColourRole::text);
    if (away > radius) {
      const QPointF end(std::clamp(at.x(), place->left(), place->right()),
                        std::clamp(at.y(), place->top(), place->bottom()));
      p.setPen(QPen(theme_->colour(mark->colour), 1));
      p.drawLine(QLineF(at, end));
    }
    draw_plated(p, *place, text, colour, *theme_);
  }
}

void MarkLayer::draw_rows(QPainter& p) const {
  const QRectF axes = parentPlot()->axisRect()->rect();
  double bottom = -1e9;
  for (const Row& row : scene_->rows) {
    QRectF name = row_name_area(row).adjusted(2, 0, -kRowGap, 0);
    // Rows closer together than their texts: every other text, or fewer; tooltips have all.
    const double needed = 0.8 * text_height(strong_font_);
    if (name.center().y() - needed / 2 < bottom) continue;
    bottom = name.center().y() + needed / 2;
    if (name.height() < needed)
      name.adjust(0, (name.height() - needed) / 2 - 2, 0, (needed - name.height()) / 2 + 2);
    const bool lit = corresponds(highlight_, row.thing);
    p.setFont(row.strong ? strong_font_ : font_);
    p.setPen(theme_->colour(lit ? ColourRole::highlight : ColourRole::text));
    const QFontMetricsF metrics(p.font());
    p.drawText(name, Qt::AlignRight | Qt::AlignVCenter,
               metrics.elidedText(QString::fromStdString(row.text), Qt::ElideMiddle, name.width()));
    const QRectF beside(axes.right() + kRowGap, name.top(),
                        parentPlot()->viewport().right() - axes.right() - 2 * kRowGap,
                        name.height());
    p.setFont(strong_font_);
    p.setPen(theme_->colour(ColourRole::text));
    const QString result = QString::fromStdString(row.result);
    p.drawText(beside, Qt::AlignLeft | Qt::AlignVCenter, result);
    p.setFont(font_);
    if (!row.result_note.empty()) {
      p.setPen(theme_->colour(row.note_colour));
      p.drawText(beside, Qt::AlignRight | Qt::AlignVCenter,
                 QString::fromStdString(row.result_note));
    }
    // Rows lower than their text have it in the tooltip alone: it would lie over the next one.
    if (!row.note.empty() && row_name_area(row).height() >= needed) {
      const QRectF inside(axes.left() + kRowGap, name.top(), axes.width() - kRowGap, name.height());
      p.setPen(theme_->colour(ColourRole::muted));
      // In its own row alone: a long one is cut off there, and whole in the tooltip.
      const QString note = QString::fromStdString(row.note).replace('\n', ' ');
      const QFontMetricsF small(p.font());
      constexpr int kWrapped = int(Qt::AlignLeft) | int(Qt::AlignVCenter) | int(Qt::TextWordWrap);
      if (small.boundingRect(inside, kWrapped, note).height() <= inside.height()) {
        p.drawText(inside, kWrapped, note);
      } else {
        p.drawText(inside, int(Qt::AlignLeft) | int(Qt::AlignVCenter),
                   small.elidedText(note, Qt::ElideRight, inside.width()));
      }
    }
  }
}

}  // namespace fuseline::gui
