#include "gui/widgets/graph_canvas.h"

#include <QFontMetricsF>
#include <QKeyEvent>
#include <QMouseEvent>
#include <QPainter>
#include <QPainterPath>
#include <QScrollBar>
#include <QWheelEvent>
#include <algorithm>
#include <array>
#include <cmath>

namespace fuseline::gui {

namespace {

constexpr double kLeastZoom = 0.1, kMostZoom = 8;
constexpr int kFitMargin = 2;  // px
constexpr double kLargestFit = 1.6;
constexpr double kLeastReadable = 0.5;  // names have 13 units: 6 to 7 pixels
constexpr int kDragStarts = 5;          // pixels

struct CanvasLegend {
  const char* text;
  const char* brief;
  ColourRole role;
  bool dashed;
  double width;  // of the line; 0: the mark of an edge that can be fused
};
constexpr std::array<CanvasLegend, 4> kLegend = {{
    {QT_TRANSLATE_NOOP("graph", "can be fused: click it"),
     QT_TRANSLATE_NOOP("graph", "click: fuse"), ColourRole::on_chip, false, 0},
    {QT_TRANSLATE_NOOP("graph", "crosses HBM, as wide as its bytes"),
     QT_TRANSLATE_NOOP("graph", "HBM"), ColourRole::bound_hbm, false, 5},
    {QT_TRANSLATE_NOOP("graph", "weights, inputs, outputs"), QT_TRANSLATE_NOOP("graph", "weights"),
     ColourRole::tensor_weight, false, 5},
    {QT_TRANSLATE_NOOP("graph", "stays on chip"), QT_TRANSLATE_NOOP("graph", "on chip"),
     ColourRole::on_chip, true, 1.8},
}};
constexpr double kSample = 26, kPad = 8;
constexpr double kBriefSample = 16, kBriefPad = 5;
constexpr int kLegendMargin = 10;  // px

// Whole texts where one line has room for all of them; else brief ones, in as many lines as it
// takes.
struct PlacedLegend {
  bool brief = false;
  std::array<QPointF, kLegend.size()> at{};  // x in pixels, y in lines
  int lines = 1;
};
PlacedLegend place_legend(double width, const QFontMetricsF& metrics) {
  PlacedLegend placed;
  double wanted = 0;
  for (const CanvasLegend& entry : kLegend)
    wanted += metrics.horizontalAdvance(QObject::tr(entry.text)) + kSample + 3 * kPad;
  placed.brief = wanted > width;
  const double sample = placed.brief ? kBriefSample : kSample;
  const double pad = placed.brief ? kBriefPad : kPad;
  double x = 0;
  for (std::size_t i = 0; i < kLegend.size(); ++i) {
    const QString text = QObject::tr(placed.brief ? kLegend[i].brief : kLegend[i].text);
    const double w = sample + pad + metrics.horizontalAdvance(text) + 1;
    if (x > 0 && x + w > width) {
      x = 0;
      ++placed.lines;
    }
    placed.at[i] = {x, static_cast<double>(placed.lines - 1)};
    x += w + 2 * pad;
  }
  return placed;
}

}  // namespace

void draw_graph_legend(QPainter& painter, const QRectF& area, const Theme& theme,
                       const QFont& font) {
  painter.save();
  painter.setFont(small_font(font));
  const QFontMetricsF metrics(painter.font());
  const PlacedLegend placed = place_legend(area.width(), metrics);
  const double sample = placed.brief ? kBriefSample : kSample;
  const double pad = placed.brief ? kBriefPad : kPad;
  const double line = area.height() / placed.lines;
  for (std::size_t i = 0; i < kLegend.size(); ++i) {
    const CanvasLegend& entry = kLegend[i];
    const QRectF place(area.left() + placed.at[i].x(), area.top() + line * placed.at[i].y(),
                       area.right() - area.left() - placed.at[i].x(), line);
    QPen pen(theme.colour(entry.role), entry.width);
    pen.setCapStyle(Qt::FlatCap);
    if (entry.dashed) pen.setDashPattern({4, 3});
    painter.setPen(pen);
    const double middle = place.center().y();
    if (entry.width > 0) {
      painter.drawLine(QPointF(place.left(), middle), QPointF(place.left() + sample, middle));
    } else {
      draw_fuse_mark(painter, {place.left() + sample / 2, middle}, theme);
    }
    painter.setPen(theme.colour(ColourRole::muted));
    painter.drawText(place.adjusted(sample + pad, 0, 0, 0), Qt::AlignLeft | Qt::AlignVCenter,
                     QObject::tr(placed.brief ? entry.brief : entry.text));
  }
  painter.restore();
}

GraphLegend::GraphLegend(QWidget* parent) : QWidget(parent) {
  setFixedHeight(QFontMetrics(small_font(font())).height() + 10);
  setBackgroundRole(QPalette::Base);
  setAutoFillBackground(true);
}

void GraphLegend::resizeEvent(QResizeEvent* event) {
  QWidget::resizeEvent(event);
  const QFontMetricsF metrics(small_font(font()));
  const int lines = place_legend(width() - 2 * kLegendMargin, metrics).lines;
  setFixedHeight(lines * QFontMetrics(small_font(font())).height() + 10);
}

void GraphLegend::paintEvent(QPaintEvent*) {
  QPainter painter(this);
  painter.setRenderHint(QPainter::Antialiasing);
  draw_graph_legend(painter, QRectF(rect()).adjusted(kLegendMargin, 0, -kLegendMargin, 0),
                    Theme(palette()), font());
}

GraphCanvas::GraphCanvas(QWidget* parent) : QGraphicsView(parent), scene_(new GraphScene(this)) {
  setScene(scene_);
  setRenderHint(QPainter::Antialiasing);
  setFrameShape(QFrame::NoFrame);
  setTransformationAnchor(QGraphicsView::AnchorUnderMouse);
  setResizeAnchor(QGraphicsView::AnchorViewCenter);
  setViewportUpdateMode(QGraphicsView::FullViewportUpdate);
  setFocusPolicy(Qt::StrongFocus);
  viewport()->setMouseTracking(true);
  setBackgroundRole(QPalette::Base);
  setAccessibleName(tr("Block graph"));
}

double GraphCanvas::fitting_scale() const {
  const QRectF all = scene_->picture();
  const QSize room = maximumViewportSize() - QSize(2 * kFitMargin, 2 * kFitMargin);
  return std::min({room.width() / all.width(), room.height() / all.height(), kLargestFit});
}

void GraphCanvas::fit() {
  placed_ = Placed::whole;
  const QRectF all = scene_->picture();
  if (all.isEmpty()) return;
  const double scale = fitting_scale();
  setTransform(QTransform::fromScale(scale, scale));
  centerOn(all.center());
  emit zoomed();
}

void GraphCanvas::show_start() {
  if (scene_->picture().isEmpty() || fitting_scale() >= kLeastReadable) {
    fit();
    placed_ = Placed::at_start;
    return;
  }
  placed_ = Placed::at_start;
  setTransform(QTransform::fromScale(kLeastReadable, kLeastReadable));
  const QPointF start = scene_->start();
  if (scene_->is_landscape()) {
    centerOn(0, start.y());
    horizontalScrollBar()->setValue(horizontalScrollBar()->minimum());
    return;
  }
  centerOn(start.x(), 0);
  verticalScrollBar()->setValue(verticalScrollBar()->minimum());
}

void GraphCanvas::go_to(QPointF centre) {
  placed_ = Placed::by_hand;
  centerOn(centre);
}

void GraphCanvas::zoom(double factor) {
  const double now = transform().m11();
  const double next = std::clamp(now * factor, kLeastZoom, kMostZoom);
  scale(next / now, next / now);
  placed_ = Placed::by_hand;
  emit zoomed();
}

void GraphCanvas::wheelEvent(QWheelEvent* event) {
  zoom(std::pow(1.0015, event->angleDelta().y()));
  event->accept();
}

void GraphCanvas::mousePressEvent(QMouseEvent* event) {
  pressed_ = last_ = event->pos();
  lassoing_ = event->button() == Qt::LeftButton &&
              (lasso_mode_ || event->modifiers().testFlag(Qt::ShiftModifier));
  lasso_.clear();
  under_press_.clear();
  if (carrying_) emit put_back();  // carried by keys
  if (lassoing_) {
    lasso_ << mapToScene(event->pos());
    return;
  }
  if (can_carry_ && event->button() == Qt::LeftButton)
    under_press_ = scene_->operator_at(mapToScene(event->pos()));
  QGraphicsView::mousePressEvent(event);
}

void GraphCanvas::mouseMoveEvent(QMouseEvent* event) {
  if (lassoing_) {
    lasso_ << mapToScene(event->pos());
    viewport()->update();
    return;
  }
  if (carried_by_mouse_) {
    emit carried(event->pos());
    return;
  }
  const bool moved = (event->pos() - pressed_).manhattanLength() > kDragStarts;
  if (!under_press_.empty() && event->buttons().testFlag(Qt::LeftButton) && moved) {
    emit lifted(under_press_);
    under_press_.clear();
    carried_by_mouse_ = carrying_;
    if (carried_by_mouse_) {
      emit carried(event->pos());
      return;
    }
  }
  if (!under_press_.empty()) return;  // it has not moved yet
  const bool held = event->buttons() & (Qt::LeftButton | Qt::MiddleButton);
  if (held && (dragging_ || moved)) {
    dragging_ = true;
    placed_ = Placed::by_hand;
    const QPoint by = event->pos() - last_;
    horizontalScrollBar()->setValue(horizontalScrollBar()->value() - by.x());
    verticalScrollBar()->setValue(verticalScrollBar()->value() - by.y());
    last_ = event->pos();
    return;
  }
  QGraphicsView::mouseMoveEvent(event);
}

void GraphCanvas::mouseReleaseEvent(QMouseEvent* event) {
  dragging_ = false;
  under_press_.clear();
  if (carried_by_mouse_) {
    carried_by_mouse_ = false;
    QGraphicsView::mouseReleaseEvent(event);
    emit put_down();
    return;
  }
  if (!lassoing_) {
    QGraphicsView::mouseReleaseEvent(event);
    return;
  }
  lassoing_ = false;
  QPainterPath area;
  area.addPolygon(lasso_);
  area.closeSubpath();
  lasso_.clear();
  viewport()->update();
  const std::vector<std::string> operators = scene_->operators_in(area);
  if (!operators.empty()) emit lassoed(operators);
}

void GraphCanvas::set_carrying(bool carrying) {
  carrying_ = carrying;
  if (!carrying) carried_by_mouse_ = false;
  viewport()->setCursor(carrying ? Qt::ClosedHandCursor : Qt::ArrowCursor);
}

bool GraphCanvas::key_while_carrying(int key) {
  switch (key) {
    case Qt::Key_Down:
    case Qt::Key_Right:
      emit target_stepped(1);
      return true;
    case Qt::Key_Up:
    case Qt::Key_Left:
      emit target_stepped(-1);
      return true;
    case Qt::Key_Return:
    case Qt::Key_Enter:
    case Qt::Key_Space:
      emit put_down();
      return true;
    case Qt::Key_Escape:
      emit put_back();
      return true;
    default:
      return false;
  }
}

void GraphCanvas::keyPressEvent(QKeyEvent* event) {
  if (carrying_ && key_while_carrying(event->key())) return;
  if (event->modifiers().testFlag(Qt::ControlModifier)) {
    const bool down = event->key() == Qt::Key_Down, up = event->key() == Qt::Key_Up;
    if (down || up) emit operator_stepped(down ? 1 : -1);
    if (down || up) return;
  }
  const auto step = [&](int by) {
    if (EdgeItem* edge = scene_->step(by)) {
      show_edge(*edge);
      setAccessibleDescription(edge->toolTip());
      emit edge_chosen(edge->edge());
    }
  };
  switch (event->key()) {
    case Qt::Key_Down:
    case Qt::Key_Right:
      return step(1);
    case Qt::Key_Up:
    case Qt::Key_Left:
      return step(-1);
    case Qt::Key_Return:
    case Qt::Key_Enter:
    case Qt::Key_Space:
      if (const EdgeItem* edge = scene_->chosen()) {
        const GraphEdge copy = edge->edge();
        emit toggle_requested(copy);
      }
      return;
    case Qt::Key_Plus:
    case Qt::Key_Equal:
      return zoom(1.25);
    case Qt::Key_Minus:
      return zoom(0.8);
    case Qt::Key_0:
      return fit();
    case Qt::Key_M:
      emit lift_requested();
      return;
    default:
      QGraphicsView::keyPressEvent(event);
  }
}

void GraphCanvas::resizeEvent(QResizeEvent* event) {
  QGraphicsView::resizeEvent(event);
  if (placed_ == Placed::at_start) show_start();
  if (placed_ == Placed::whole) fit();
}

void GraphCanvas::drawForeground(QPainter* painter, const QRectF&) {
  const Theme theme(palette());
  if (lasso_.size() > 1) {
    QColor line = theme.colour(ColourRole::highlight);
    painter->setPen(QPen(line, 0));
    line.setAlpha(40);
    painter->setBrush(line);
    painter->drawPolygon(lasso_);
  }
}

}  // namespace fuseline::gui
