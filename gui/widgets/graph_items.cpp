#include "gui/widgets/graph_items.h"

#include <QCursor>
#include <QFontMetricsF>
#include <QPainter>
#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "gui/widgets/qt_text.h"

namespace fuseline::gui {

namespace {

constexpr double kLabelPixels = 13;
constexpr double kDetailPixels = 10.5;
constexpr double kHullMargin = 10;
constexpr double kHeadLength = 10;  // dot ends an edge this far before its node
constexpr double kMarkWidth = 12;   // of the mark before a label
constexpr double kEasyToHit = 14;   // width of what the mouse hits around an edge

QFont pixels(double size, int weight = QFont::Normal) {
  QFont font;
  font.setPixelSize(static_cast<int>(std::lround(size)));
  font.setWeight(weight);
  return font;
}

QColor with_alpha(QColor c, int alpha) {
  c.setAlpha(alpha);
  return c;
}

QPointF at(const Point& p) { return {p.x, p.y}; }

QRectF rectangle(const Box& box) {
  return {box.centre.x - box.width / 2, box.centre.y - box.height / 2, box.width, box.height};
}

QPainterPath curve(const std::vector<Point>& points) {
  QPainterPath path;
  if (points.empty()) return path;
  path.moveTo(at(points.front()));
  for (std::size_t i = 1; i + 2 < points.size(); i += 3) {
    path.cubicTo(at(points[i]), at(points[i + 1]), at(points[i + 2]));
  }
  return path;
}

}  // namespace

void GraphItem::set_theme(const Theme& theme) {
  theme_ = theme;
  update();
}

void GraphItem::set_lit(bool lit) {
  if (lit == lit_) return;
  lit_ = lit;
  update();
}

NodeItem::NodeItem(const GraphNode& node, const Box& box, const Theme& theme)
    : GraphItem(node.thing, theme), node_(node), box_(rectangle(box)) {
  setToolTip(to_qt(node.tooltip));
  setZValue(3);
}

QRectF NodeItem::boundingRect() const { return box_.adjusted(-3, -3, 3, 3); }

QPainterPath NodeItem::shape() const {
  QPainterPath path;
  path.addRect(box_);
  return path;
}

void NodeItem::paint(QPainter* painter, const QStyleOptionGraphicsItem*, QWidget*) {
  const QColor hue = theme().colour(node_.colour);
  const QColor edge = is_lit() ? theme().colour(ColourRole::highlight) : hue;
  painter->setPen(QPen(edge, is_lit() ? 2.6 : 1.3));
  painter->setBrush(node_.is_tensor ? theme().background() : hue);
  const double radius = node_.is_tensor ? 3 : 7;
  painter->drawRoundedRect(box_, radius, radius);
  painter->setPen(node_.is_tensor ? theme().colour(ColourRole::text) : ink_on(hue));
  painter->setFont(pixels(kLabelPixels, node_.is_tensor ? QFont::Normal : QFont::DemiBold));
  if (!node_.is_tensor) {
    painter->drawText(box_, Qt::AlignCenter, to_qt(node_.label));
    return;
  }
  const QRectF upper(box_.left(), box_.top() + 1, box_.width(), box_.height() * 0.52);
  const QRectF lower(box_.left(), box_.center().y(), box_.width(), box_.height() * 0.46);
  painter->drawText(upper, Qt::AlignCenter, to_qt(node_.label));
  painter->setFont(pixels(kDetailPixels));
  painter->setPen(theme().colour(ColourRole::muted));
  painter->drawText(lower, Qt::AlignCenter, to_qt(node_.detail));
}

EdgeItem::EdgeItem(const GraphEdge& edge, const std::vector<Point>& bezier, const Theme& theme)
    : GraphItem(edge.thing, theme), edge_(edge), path_(curve(bezier)) {
  set_preview({});
  label_width_ = QFontMetricsF(pixels(kDetailPixels)).horizontalAdvance(to_qt(edge_.label));
  setZValue(edge.can_toggle ? 2 : 1);
  if (bezier.size() >= 2) {
    const QPointF end = at(bezier.back());
    QPointF back = end - at(bezier[bezier.size() - 2]);
    const double length = std::hypot(back.x(), back.y());
    back = length > 1e-9 ? back / length : QPointF(0, 1);
    const QPointF side(-back.y(), back.x());
    const double half = std::max(4.0, width() * 0.85);
    head_ << end + side * half << end + back * kHeadLength << end - side * half;
  }
}

void EdgeItem::set_preview(const QString& preview) {
  preview_ = preview;
  QString tip = to_qt(edge_.tooltip);
  if (chance_ && chance_->legal) {
    tip +=
        chance_->splits ? QObject::tr("\nClick: split here") : QObject::tr("\nClick: keep on chip");
  } else if (chance_ && preview.isEmpty()) {
    tip += (chance_->splits ? QObject::tr("\nCannot be split here: %1")
                            : QObject::tr("\nCannot be kept on chip: %1"))
               .arg(to_qt(chance_->reason));
  }
  if (!preview.isEmpty()) tip += "\n" + preview;
  setToolTip(tip);
}

void EdgeItem::set_chance(const EdgeChance& chance) {
  prepareGeometryChange();
  chance_ = chance;
  no_room_ = false;
  setCursor(chance.legal ? Qt::PointingHandCursor : Qt::WhatsThisCursor);
  set_preview(preview_);
  update();
}

void EdgeItem::set_chosen(bool chosen) {
  chosen_ = chosen;
  setZValue(chosen ? 4 : edge_.can_toggle ? 2 : 1);
  update();
}

double EdgeItem::width() const { return 1.4 + 8 * edge_.thickness; }

QColor EdgeItem::colour() const {
  if (is_lit() || chosen_) return theme().colour(ColourRole::highlight);
  if (edge_.on_chip) return theme().colour(ColourRole::on_chip);
  const bool inner = !edge_.choice.from.empty();
  return theme().colour(inner ? ColourRole::bound_hbm : ColourRole::tensor_weight);
}

QRectF EdgeItem::label_box() const {
  const double w = label_width_ + 8 + (can_be_fused() ? kMarkWidth : 0);
  const QPointF c = path_.pointAtPercent(label_at_) + QPointF(label_aside_ * w, 0);
  return {c.x() - w / 2, c.y() - 7.5, w, 15};
}

bool EdgeItem::has_label() const {
  return !no_room_ && (edge_.thickness > 0.05 || edge_.on_chip || can_be_fused());
}

QRectF EdgeItem::place_label(const std::vector<QRectF>& taken) {
  constexpr std::array<double, 9> kPlaces = {0.5, 0.4, 0.6, 0.3, 0.7, 0.2, 0.8, 0.1, 0.9};
  prepareGeometryChange();
  for (const double aside : {0.0, -0.6, 0.6}) {  // on the edge, else beside it
    for (const double place : kPlaces) {
      label_at_ = place;
      label_aside_ = aside;
      const QRectF box = label_box();
      const auto meets = [&](const QRectF& r) { return r.intersects(box); };
      if (std::ranges::none_of(taken, meets)) return box;
    }
  }
  label_at_ = kPlaces.front();
  label_aside_ = 0;
  no_room_ = true;
  return {};
}

QRectF EdgeItem::boundingRect() const {
  const double m = width() + 4;
  return path_.boundingRect()
      .united(head_.boundingRect())
      .adjusted(-m, -m, m, m)
      .united(label_box().adjusted(-2, -2, 2, 2));
}

QPainterPath EdgeItem::shape() const {
  QPainterPathStroker stroker;
  stroker.setWidth(std::max(kEasyToHit, width() + 4));
  QPainterPath path = stroker.createStroke(path_);
  path.addRect(label_box());
  path.setFillRule(Qt::WindingFill);
  return path;
}

void EdgeItem::paint(QPainter* painter, const QStyleOptionGraphicsItem*, QWidget*) {
  const QColor c = colour();
  QPen pen(c, edge_.on_chip ? 1.8 : width());
  pen.setCapStyle(Qt::FlatCap);
  if (edge_.on_chip) pen.setDashPattern({4, 3});
  if (is_lit() || chosen_) pen.setWidthF(std::max(pen.widthF(), 2.6));
  painter->setBrush(Qt::NoBrush);
  painter->setPen(pen);
  painter->drawPath(path_);
  painter->setPen(Qt::NoPen);
  painter->setBrush(c);
  painter->drawPolygon(head_);
  if (chosen_) paint_label(*painter);  // it lies over all others
}

void EdgeItem::paint_label(QPainter& painter) const {
  // Many are lit at once: one without room would lie over another one's label.
  if (!has_label() && !chosen_ && (no_room_ || !is_lit())) {
    if (can_be_fused()) draw_fuse_mark(painter, middle(), theme());
    return;
  }
  const QColor c = colour();
  const QRectF box = label_box();
  painter.setBrush(theme().background());
  painter.setPen(chosen_ ? QPen(c, 1.5) : QPen(with_alpha(c, 90), 0.8));
  painter.drawRoundedRect(box, 7, 7);
  painter.setFont(pixels(kDetailPixels));
  painter.setPen(theme().colour(edge_.on_chip ? ColourRole::on_chip : ColourRole::text));
  if (!can_be_fused()) {
    painter.drawText(box, Qt::AlignCenter, to_qt(edge_.label));
    return;
  }
  painter.drawText(box.adjusted(kMarkWidth, 0, 0, 0), Qt::AlignCenter, to_qt(edge_.label));
  draw_fuse_mark(painter, {box.left() + 8, box.center().y()}, theme());
}

EdgeLabelsItem::EdgeLabelsItem(std::vector<EdgeItem*> edges, QRectF area)
    : edges_(std::move(edges)), area_(area) {
  setAcceptedMouseButtons(Qt::NoButton);
  setZValue(2.5);
}

void EdgeLabelsItem::paint(QPainter* painter, const QStyleOptionGraphicsItem*, QWidget*) {
  for (const EdgeItem* edge : edges_)
    if (edge->isVisible() && !edge->is_chosen()) edge->paint_label(*painter);
}

void draw_fuse_mark(QPainter& painter, QPointF centre, const Theme& theme) {
  constexpr double kArm = 3.2, kRadius = 5.6;
  painter.save();
  const QColor hue = theme.colour(ColourRole::on_chip);
  painter.setPen(Qt::NoPen);
  painter.setBrush(hue);
  painter.drawEllipse(centre, kRadius, kRadius);
  painter.setPen(QPen(ink_on(hue), 1.6));
  painter.drawLine(centre - QPointF(kArm, 0), centre + QPointF(kArm, 0));
  painter.drawLine(centre - QPointF(0, kArm), centre + QPointF(0, kArm));
  painter.restore();
}

HullItem::HullItem(const GraphGroup& group, const Hull& hull, const Theme& theme)
    : GraphItem(group.thing, theme), group_(group) {
  QPainterPath all;
  all.setFillRule(Qt::WindingFill);
  for (const Box& box : hull.boxes) {
    QPainterPath one;
    one.addRoundedRect(
        rectangle(box).adjusted(-kHullMargin, -kHullMargin, kHullMargin, kHullMargin), 12, 12);
    all = all.united(one);
  }
  QPainterPathStroker stroker;
  stroker.setWidth(4.6 * kHullMargin);
  stroker.setCapStyle(Qt::RoundCap);
  stroker.setJoinStyle(Qt::RoundJoin);
  for (const std::vector<Point>& spine : hull.spines) {
    QPainterPath line = curve(spine);
    const QPointF end = line.currentPosition();
    line.lineTo(end.x(), end.y() + kHeadLength);
    all = all.united(stroker.createStroke(line));
  }
  path_ = all.simplified();
  setToolTip(QObject::tr("one kernel: %1").arg(to_qt(group.name)));
  setZValue(-1);
}

bool HullItem::holds(const std::string& node) const {
  return std::ranges::find(group_.nodes, node) != group_.nodes.end();
}

QRectF HullItem::boundingRect() const { return path_.boundingRect().adjusted(-3, -3, 3, 3); }

void HullItem::paint(QPainter* painter, const QStyleOptionGraphicsItem*, QWidget*) {
  const QColor hue = theme().colour(group_.colour);
  painter->setBrush(with_alpha(hue, theme().is_dark() ? 74 : 58));
  painter->setPen(is_lit() ? QPen(theme().colour(ColourRole::highlight), 2.4)
                           : QPen(with_alpha(hue, 170), 1.2));
  painter->drawPath(path_);
}

FrameItem::FrameItem(QRectF area, QString label, const Theme& theme)
    : GraphItem({}, theme), area_(area), label_(std::move(label)) {
  setZValue(-3);
}

QRectF FrameItem::boundingRect() const { return area_.adjusted(-6, -6, 6, 6); }

void FrameItem::paint(QPainter* painter, const QStyleOptionGraphicsItem*, QWidget*) {
  painter->setPen(QPen(theme().outline(), 1.2));
  painter->setBrush(Qt::NoBrush);
  // Two more layers look out behind.
  for (const double shift : {5.0, 2.5}) {
    painter->drawRoundedRect(area_.translated(shift, -shift), 14, 14);
  }
  painter->setBrush(theme().surface());
  painter->drawRoundedRect(area_, 14, 14);
  painter->setFont(pixels(15, QFont::DemiBold));
  painter->setPen(theme().colour(ColourRole::muted));
  painter->drawText(area_.adjusted(14, 8, -14, -8), Qt::AlignTop | Qt::AlignRight, label_);
}

}  // namespace fuseline::gui
