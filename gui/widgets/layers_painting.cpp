// How all layers of a model are painted, near and from afar.
#include <QFontMetricsF>
#include <QLineF>
#include <QPainter>
#include <QPainterPath>
#include <algorithm>
#include <utility>

#include "gui/model/text.h"
#include "gui/widgets/layers_canvas.h"
#include "gui/widgets/qt_text.h"

namespace fuseline::gui {

namespace {

constexpr double kWholeNames = 0.5;  // scale from which titles are whole

QPointF point_of(const Point& p) { return {p.x, p.y}; }

QPainterPath path_of(const std::vector<Point>& bezier) {
  QPainterPath path;
  if (bezier.empty()) return path;
  path.moveTo(point_of(bezier.front()));
  for (std::size_t i = 1; i + 2 < bezier.size(); i += 3)
    path.cubicTo(point_of(bezier[i]), point_of(bezier[i + 1]), point_of(bezier[i + 2]));
  return path;
}

QFont layer_font(double size, int weight = QFont::Normal) {
  QFont font;
  font.setPixelSize(static_cast<int>(size));
  font.setWeight(weight);
  return font;
}

}  // namespace

void LayersCanvas::colour() {
  const Theme theme(palette());
  drawn_.clear();
  for (const LayerKind& kind : stack_.kinds) {
    Drawn d;
    for (const GraphNode& node : kind.graph.nodes) {
      const auto found = kind.layout.nodes.find(node.id);
      if (found == kind.layout.nodes.end()) continue;
      d.boxes.emplace_back(rectangle_of(found->second), theme.colour(node.colour));
    }
    for (const auto& [ends, bezier] : kind.layout.edges)
      if (bezier.size() > 1)
        d.lines.emplace_back(point_of(bezier.front()), point_of(bezier.back()));
    drawn_.push_back(std::move(d));
  }
}

void LayersCanvas::paint_title(QPainter& painter, const LayerPlace& at, double scale) const {
  const Theme theme(palette());
  const LayerKind& kind = stack_.kinds[at.kind];
  const QRectF frame = QRectF(0, 0, kind.layout.width, kind.layout.height)
                           .adjusted(-kAroundLayer, -kLayerTitle, kAroundLayer, kAroundLayer);
  painter.setBrush(theme.surface());
  painter.setPen(QPen(theme.outline(), 0));
  painter.drawRect(frame);
  // The number is read from afar too, where it has room.
  const double size = std::clamp(11 / scale, 15.0, kind.layout.width / 5);
  if (size * scale < 6) return;
  painter.setPen(theme.colour(ColourRole::muted));
  painter.setFont(layer_font(size, QFont::DemiBold));
  const bool near = scale >= kWholeNames;
  const QString text = near ? tr("layer %1 · %2 · %3")
                                  .arg(at.number)
                                  .arg(to_qt(kind.name), to_qt(short_time(kind.time)))
                            : QString::number(at.number);
  const QRectF line(frame.left() + 6, frame.top() - (near ? 0 : size * 1.3), frame.width() - 12,
                    size * 1.6);
  // From afar the number is higher than the gap between two rows: the frame above gives way to it.
  if (!near) {
    const double width = QFontMetricsF(painter.font()).horizontalAdvance(text);
    painter.fillRect(QRectF(line.left(), line.top(), width, size * 1.3), theme.background());
  }
  painter.drawText(line, Qt::AlignLeft | Qt::AlignTop, text);
}

void LayersCanvas::paint_bands(QPainter& painter, const LayerPlace& at, double scale) const {
  const Theme theme(palette());
  const LayerKind& kind = stack_.kinds[at.kind];
  const double width = kind.layout.width, height = kind.layout.height;
  for (const LayerBand& band : kind.bands) {
    const QRectF box(0, band.begin * height, width, (band.end - band.begin) * height);
    if (box.height() * scale < 0.3) continue;
    painter.fillRect(box, theme.colour(band.colour));
  }
}

void LayersCanvas::paint_boxes(QPainter& painter, const LayerPlace& at) const {
  const Theme theme(palette());
  const Drawn& d = drawn_[at.kind];
  painter.setPen(QPen(theme.colour(ColourRole::tensor_weight), 0));
  painter.drawLines(d.lines.data(), static_cast<int>(d.lines.size()));
  for (const auto& [box, hue] : d.boxes) painter.fillRect(box, hue);
}

void LayersCanvas::paint_names(QPainter& painter, const LayerPlace& at, const QRectF& seen) const {
  const Theme theme(palette());
  const LayerKind& kind = stack_.kinds[at.kind];
  painter.setBrush(Qt::NoBrush);
  for (const GraphEdge& edge : kind.graph.edges) {
    const auto found = kind.layout.edges.find({edge.from, edge.to});
    if (found == kind.layout.edges.end()) continue;
    const QPainterPath path = path_of(found->second);
    if (!path.controlPointRect().adjusted(-6, -6, 6, 6).intersects(seen)) continue;
    const bool inner = !edge.choice.from.empty();
    QPen pen(theme.colour(edge.on_chip ? ColourRole::on_chip
                          : inner      ? ColourRole::bound_hbm
                                       : ColourRole::tensor_weight),
             edge.on_chip ? 1.8 : 1.4 + 8 * edge.thickness);
    if (edge.on_chip) pen.setDashPattern({4, 3});
    painter.setPen(pen);
    painter.drawPath(path);
  }
  for (const GraphNode& node : kind.graph.nodes) {
    const auto found = kind.layout.nodes.find(node.id);
    if (found == kind.layout.nodes.end()) continue;
    const QRectF box = rectangle_of(found->second);
    if (!box.intersects(seen)) continue;
    const QColor hue = theme.colour(node.colour);
    painter.setPen(QPen(hue, 1.3));
    painter.setBrush(node.is_tensor ? theme.background() : hue);
    painter.drawRoundedRect(box, node.is_tensor ? 3 : 7, node.is_tensor ? 3 : 7);
    painter.setPen(node.is_tensor ? theme.colour(ColourRole::text) : ink_on(hue));
    painter.setFont(layer_font(13, node.is_tensor ? QFont::Normal : QFont::DemiBold));
    painter.drawText(box, Qt::AlignCenter, to_qt(node.label));
  }
}

void LayersCanvas::paint(QPainter& painter, const StackPlaces& places, const QRectF& seen,
                         double scale) const {
  const StackDetail detail = detail_at(scale);
  painter.setRenderHint(QPainter::Antialiasing, detail == StackDetail::names);
  const QColor light = Theme(palette()).colour(ColourRole::highlight);
  const LayerPlace* before = nullptr;
  for (const LayerPlace& at : places.layers) {
    const LayerKind& kind = stack_.kinds[at.kind];
    const QRectF frame = QRectF(at.x, at.y, kind.layout.width, kind.layout.height)
                             .adjusted(-kAroundLayer, -2 * kLayerTitle, kAroundLayer, kAroundLayer);
    const LayerPlace* last = std::exchange(before, &at);
    if (!frame.intersects(seen)) continue;
    if (last != nullptr && last->y == at.y) {  // what a layer leaves for the next one
      const double end = last->x + stack_.kinds[last->kind].layout.width + kAroundLayer;
      painter.setPen(QPen(Theme(palette()).colour(ColourRole::muted), scale < 0.3 ? 0 : 3));
      painter.drawLine(QPointF(end, at.y), QPointF(at.x - kAroundLayer, at.y));
    }
    painter.save();
    painter.translate(at.x, at.y);
    if (detail != StackDetail::bands || kind.layout.width * scale > 14)
      paint_title(painter, at, scale);
    if (detail == StackDetail::bands) paint_bands(painter, at, scale);
    if (detail == StackDetail::boxes) paint_boxes(painter, at);
    if (detail == StackDetail::names) paint_names(painter, at, seen.translated(-at.x, -at.y));
    if (kind.is_first && detail != StackDetail::bands) {
      painter.setBrush(Qt::NoBrush);
      painter.setPen(QPen(light, std::max(2.6, 1.5 / scale)));
      for (const std::string& op : lit_) {
        const auto found = kind.layout.nodes.find("op:" + op);
        if (found != kind.layout.nodes.end()) painter.drawRect(rectangle_of(found->second));
      }
    }
    painter.restore();
  }
}

void LayersCanvas::paintEvent(QPaintEvent*) {
  QPainter painter(this);
  if (!stack_.problem.empty()) {
    painter.setPen(Theme(palette()).colour(ColourRole::muted));
    painter.drawText(rect().adjusted(20, 20, -20, -20), Qt::AlignCenter | Qt::TextWordWrap,
                     to_qt(stack_.problem));
    return;
  }
  painter.translate(origin_);
  painter.scale(scale_, scale_);
  paint(painter, places_, {to_stack({0, 0}), to_stack(QPointF(width(), height()))}, scale_);
}

void LayersCanvas::paint_whole(QPainter& painter, const QRectF& area) const {
  const StackPlaces places = stack_places(stack_, area.width() / std::max(1.0, area.height()));
  const double wide = places.width + 2 * kAroundLayer,
               high = places.height + kLayerTitle + 2 * kAroundLayer;
  const double scale = std::min(area.width() / wide, area.height() / high);
  painter.save();
  painter.translate(
      area.left() + (area.width() - wide * scale) / 2 + kAroundLayer * scale,
      area.top() + (area.height() - high * scale) / 2 + (kLayerTitle + kAroundLayer) * scale);
  painter.scale(scale, scale);
  paint(painter, places, QRectF(-kAroundLayer, -2 * kLayerTitle, wide, high + kLayerTitle), scale);
  painter.restore();
}

}  // namespace fuseline::gui
