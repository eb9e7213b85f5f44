#include "gui/widgets/drop_items.h"

#include <QFontMetricsF>
#include <QPainter>

#include "gui/widgets/qt_text.h"

namespace fuseline::gui {

namespace {

constexpr double kDropLabelPixels = 12;
constexpr double kDropLabelHeight = 19, kDropLabelPad = 8;
constexpr double kFrameOfTarget = 2.2, kFrameOfAim = 4;
constexpr int kFillOfTarget = 40, kFillOfAim = 90;  // of 255

}  // namespace

Colour role_of_target(const MoveTarget& target) {
  return {target.legal ? ColourRole::allowed : ColourRole::refused, 0};
}

Colour label_role_of(const MoveTarget& target) {
  const bool slower =
      target.legal && target.saving && target.saving->colour.role == ColourRole::worse;
  return slower ? target.saving->colour : role_of_target(target);
}

class DropItem::Label : public QGraphicsItem {
 public:
  explicit Label(QGraphicsItem* parent) : QGraphicsItem(parent) {
    setFlag(QGraphicsItem::ItemIgnoresTransformations);
    setAcceptedMouseButtons(Qt::NoButton);
  }
  void set(const QString& text, const QColor& fill) {
    prepareGeometryChange();
    text_ = text;
    fill_ = fill;
    setVisible(!text.isEmpty());
  }
  // To the right of its place, which is the upper right corner of the target.
  [[nodiscard]] QRectF boundingRect() const override {
    const QFontMetricsF metrics(label_font());
    const double w = metrics.horizontalAdvance(text_) + 2 * kDropLabelPad;
    return {-w / 2, -kDropLabelHeight / 2, w, kDropLabelHeight};
  }
  void paint(QPainter* painter, const QStyleOptionGraphicsItem*, QWidget*) override {
    painter->setFont(label_font());
    painter->setPen(Qt::NoPen);
    painter->setBrush(fill_);
    painter->drawRoundedRect(boundingRect(), kDropLabelHeight / 2, kDropLabelHeight / 2);
    painter->setPen(ink_on(fill_));
    painter->drawText(boundingRect(), Qt::AlignCenter, text_);
  }

 private:
  static QFont label_font() {
    QFont font;
    font.setPixelSize(static_cast<int>(kDropLabelPixels));
    font.setWeight(QFont::DemiBold);
    return font;
  }
  QString text_;
  QColor fill_;
};

DropItem::DropItem(std::size_t target, QPainterPath place, const Theme& theme)
    : target_(target), place_(std::move(place)), theme_(theme), label_(new Label(this)) {
  setZValue(5);
  setAcceptedMouseButtons(Qt::NoButton);
  const QRectF box = place_.boundingRect();
  label_->setPos(box.center().x(), box.top());
}

void DropItem::show(const MoveTarget& target, bool aimed) {
  role_ = role_of_target(target);
  legal_ = target.legal;
  near_ = target.near;
  aimed_ = aimed;
  setZValue(aimed ? 6 : 5);
  // Kernels that no tensor connects with it would all say the same.
  const QString mark = target.legal ? QStringLiteral("✓ ") : QStringLiteral("✕ ");
  label_->set(near_ || aimed ? mark + to_qt(target.label) : QString(),
              theme_.colour(label_role_of(target)));
  update();
}

QRectF DropItem::boundingRect() const {
  return place_.boundingRect().adjusted(-kFrameOfAim, -kFrameOfAim, kFrameOfAim, kFrameOfAim);
}

void DropItem::paint(QPainter* painter, const QStyleOptionGraphicsItem*, QWidget*) {
  QColor hue = theme_.colour(role_);
  QPen pen(hue, aimed_ ? kFrameOfAim : near_ ? kFrameOfTarget : 1.0);
  if (!legal_) pen.setStyle(Qt::DashLine);  // told apart without colours too
  painter->setPen(pen);
  hue.setAlpha(aimed_ ? kFillOfAim : near_ ? kFillOfTarget : 0);
  painter->setBrush(hue);
  painter->drawPath(place_);
}

}  // namespace fuseline::gui
