#include "gui/widgets/layers_canvas.h"

#include <QHelpEvent>
#include <QMouseEvent>
#include <QToolTip>
#include <QWheelEvent>
#include <algorithm>
#include <cmath>

#include "gui/model/text.h"
#include "gui/widgets/qt_text.h"

namespace fuseline::gui {

namespace {

constexpr double kLeastScale = 0.002, kMostScale = 6;
constexpr double kBoxesFrom = 0.055;  // a box of 29 points is then 1.6 pixels high
constexpr double kNamesFrom = 0.5;    // letters of 13 points are then 6 to 7 pixels high
constexpr double kReading = 0.8;
constexpr int kNumberRoom = 18;  // px above the first row, for the numbers of its layers
constexpr int kStackMargin = 4;  // px
constexpr int kStep = 60;        // pixels, of an arrow key
constexpr double kClick = 5;     // pixels that a click may move

}  // namespace

LayersCanvas::LayersCanvas(QWidget* parent) : QWidget(parent) {
  setFocusPolicy(Qt::StrongFocus);
  setMouseTracking(true);
  setBackgroundRole(QPalette::Base);
  setAutoFillBackground(true);
  setObjectName("layers-canvas");
  setAccessibleName(tr("All layers of the model"));
}

StackDetail LayersCanvas::detail_at(double scale) {
  return scale >= kNamesFrom   ? StackDetail::names
         : scale >= kBoxesFrom ? StackDetail::boxes
                               : StackDetail::bands;
}

void LayersCanvas::show_stack(LayerStack stack) {
  const bool other = stack.layers() != stack_.layers() || stack.kinds.size() != stack_.kinds.size();
  stack_ = std::move(stack);
  colour();
  places_ = stack_places(stack_, static_cast<double>(std::max(1, width())) / std::max(1, height()));
  setAccessibleDescription(to_qt(stack_.title));
  if (other || fitted_) fit();
  update();
}

void LayersCanvas::light(const std::set<std::string>& operators) {
  if (operators == lit_) return;
  lit_ = operators;
  update();
}

void LayersCanvas::restyle() {
  colour();
  update();
}

void LayersCanvas::moved() {
  const double room = 40;  // some of it stays in sight
  origin_.setX(std::clamp(origin_.x(), room - places_.width * scale_, width() - room));
  origin_.setY(std::clamp(origin_.y(), room - places_.height * scale_, height() - room));
  update();
}

void LayersCanvas::fit() {
  fitted_ = true;
  const double wide = places_.width + 2 * kAroundLayer,
               high = places_.height + kLayerTitle + 2 * kAroundLayer;
  if (places_.layers.empty()) return;
  const double room = std::max(1, height() - kNumberRoom - kStackMargin);
  scale_ = std::clamp(std::min((width() - 2 * kStackMargin) / wide, room / high), kLeastScale, 1.2);
  origin_ =
      QPointF((width() - wide * scale_) / 2 + kAroundLayer * scale_,
              kNumberRoom + (room - high * scale_) / 2 + (kLayerTitle + kAroundLayer) * scale_);
  update();
}

void LayersCanvas::zoom(double factor, QPointF about) {
  const double next = std::clamp(scale_ * factor, kLeastScale, kMostScale);
  const QPointF place = to_stack(about);
  scale_ = next;
  origin_ = about - place * scale_;
  fitted_ = false;
  moved();
}

void LayersCanvas::pan(QPointF by) {
  origin_ += by;
  fitted_ = false;
  moved();
}

void LayersCanvas::go_to_layer(std::int64_t number) {
  if (places_.layers.empty()) return;
  layer_ = std::clamp<std::int64_t>(number, 1, static_cast<std::int64_t>(places_.layers.size()));
  const LayerPlace& at = places_.layers[static_cast<std::size_t>(layer_ - 1)];
  const GraphLayout& graph = stack_.kinds[at.kind].layout;
  scale_ = std::max(scale_, kReading);
  fitted_ = false;
  origin_ = QPointF(width() / 2.0 - (at.x + graph.width / 2) * scale_,
                    (kLayerTitle + kAroundLayer) * scale_ - at.y * scale_);
  setAccessibleDescription(tr("layer %1 of %2, %3")
                               .arg(layer_)
                               .arg(stack_.layers())
                               .arg(to_qt(stack_.kinds[at.kind].name)));
  moved();
}

QRectF LayersCanvas::operator_box(std::int64_t layer, const std::string& op) const {
  if (layer < 1 || layer > static_cast<std::int64_t>(places_.layers.size())) return {};
  const LayerPlace& at = places_.layers[static_cast<std::size_t>(layer - 1)];
  const auto found = stack_.kinds[at.kind].layout.nodes.find("op:" + op);
  if (found == stack_.kinds[at.kind].layout.nodes.end()) return {};
  const QRectF box = rectangle_of(found->second).translated(at.x, at.y);
  return {origin_ + box.topLeft() * scale_, box.size() * scale_};
}

const LayerPlace* LayersCanvas::layer_at(QPointF place) const {
  for (const LayerPlace& at : places_.layers) {
    const GraphLayout& graph = stack_.kinds[at.kind].layout;
    if (QRectF(at.x, at.y, graph.width, graph.height)
            .adjusted(-kAroundLayer, -kLayerTitle, kAroundLayer, kAroundLayer)
            .contains(place))
      return &at;
  }
  return nullptr;
}

const GraphNode* LayersCanvas::node_at(QPointF place) const {
  const LayerPlace* at = layer_at(place);
  if (at == nullptr || detail() == StackDetail::bands) return nullptr;
  const LayerKind& kind = stack_.kinds[at->kind];
  for (const GraphNode& node : kind.graph.nodes) {
    const auto found = kind.layout.nodes.find(node.id);
    if (found != kind.layout.nodes.end() &&
        rectangle_of(found->second).translated(at->x, at->y).contains(place))
      return &node;
  }
  return nullptr;
}

void LayersCanvas::resizeEvent(QResizeEvent* event) {
  QWidget::resizeEvent(event);
  if (!fitted_) return;
  places_ = stack_places(stack_, static_cast<double>(std::max(1, width())) / std::max(1, height()));
  fit();
}

void LayersCanvas::wheelEvent(QWheelEvent* event) {
  zoom(std::pow(1.0015, event->angleDelta().y()), event->position());
  event->accept();
}

void LayersCanvas::mousePressEvent(QMouseEvent* event) {
  pressed_ = last_ = event->localPos();
  dragging_ = false;
}

void LayersCanvas::mouseMoveEvent(QMouseEvent* event) {
  const QPointF now = event->localPos();
  if (event->buttons() & (Qt::LeftButton | Qt::MiddleButton)) {
    dragging_ = dragging_ || (now - pressed_).manhattanLength() > kClick;
    if (dragging_) pan(now - last_);
    last_ = now;
    return;
  }
  const LayerPlace* at = layer_at(to_stack(now));
  const GraphNode* node = node_at(to_stack(now));
  const bool linked = node != nullptr && at != nullptr && stack_.kinds[at->kind].is_first;
  emit hovered(linked ? node->thing : Thing{});
}

void LayersCanvas::mouseReleaseEvent(QMouseEvent* event) {
  if (dragging_ || event->button() != Qt::LeftButton) return;
  const LayerPlace* at = layer_at(to_stack(event->localPos()));
  if (at == nullptr) return;
  layer_ = at->number;
  const GraphNode* node = node_at(to_stack(event->localPos()));
  if (node != nullptr && stack_.kinds[at->kind].is_first) {
    const Thing thing = node->thing;
    emit clicked(thing);
  }
}

void LayersCanvas::mouseDoubleClickEvent(QMouseEvent* event) {
  if (const LayerPlace* at = layer_at(to_stack(event->localPos()))) go_to_layer(at->number);
}

void LayersCanvas::keyPressEvent(QKeyEvent* event) {
  const QPointF middle = QRectF(rect()).center();
  switch (event->key()) {
    case Qt::Key_Left:
      return pan({kStep, 0});
    case Qt::Key_Right:
      return pan({-kStep, 0});
    case Qt::Key_Up:
      return pan({0, kStep});
    case Qt::Key_Down:
      return pan({0, -kStep});
    case Qt::Key_Plus:
    case Qt::Key_Equal:
      return zoom(1.25, middle);
    case Qt::Key_Minus:
      return zoom(0.8, middle);
    case Qt::Key_0:
      return fit();
    case Qt::Key_PageDown:
      return go_to_layer(layer_ + 1);
    case Qt::Key_PageUp:
      return go_to_layer(layer_ - 1);
    case Qt::Key_Home:
      return go_to_layer(1);
    case Qt::Key_End:
      return go_to_layer(stack_.layers());
    default:
      QWidget::keyPressEvent(event);
  }
}

bool LayersCanvas::event(QEvent* event) {
  if (event->type() != QEvent::ToolTip) return QWidget::event(event);
  const auto* help = static_cast<QHelpEvent*>(event);
  const LayerPlace* at = layer_at(to_stack(help->pos()));
  if (at == nullptr) {
    QToolTip::hideText();
    return true;
  }
  const LayerKind& kind = stack_.kinds[at->kind];
  QString text = tr("layer %1 of %2: %3, %4")
                     .arg(at->number)
                     .arg(stack_.layers())
                     .arg(to_qt(kind.name), to_qt(short_time(kind.time)));
  if (const GraphNode* node = node_at(to_stack(help->pos()))) text += "\n" + to_qt(node->tooltip);
  QToolTip::showText(help->globalPos(), text, this);
  return true;
}

}  // namespace fuseline::gui
