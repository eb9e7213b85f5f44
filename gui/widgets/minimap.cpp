#include "gui/widgets/minimap.h"

#include <QKeyEvent>
#include <QMouseEvent>
#include <QPainter>
#include <QScrollBar>
#include <QTimer>
#include <algorithm>

namespace fuseline::gui {

namespace {

constexpr int kMapMargin = 8;  // px from the corner
constexpr int kLongestSide = 130;
constexpr double kPartOfCanvas = 0.3;  // at most, of its shorter side
constexpr int kLeastCanvas = 360;      // px: in a narrower one the map would cover what it maps
constexpr double kSeenWhole = 0.98;    // of the picture: then no map is needed
constexpr double kKeyStep = 0.25;      // of what is seen

}  // namespace

Minimap::Minimap(GraphCanvas& canvas) : QWidget(canvas.viewport()), canvas_(canvas) {
  setObjectName("minimap");
  setAccessibleName(tr("Map of the whole graph"));
  setToolTip(tr("The whole graph; press or drag to go there"));
  setFocusPolicy(Qt::StrongFocus);
  setCursor(Qt::PointingHandCursor);
  canvas.viewport()->installEventFilter(this);
  for (const QScrollBar* bar : {canvas.horizontalScrollBar(), canvas.verticalScrollBar()}) {
    connect(bar, &QScrollBar::valueChanged, this, &Minimap::follow);
    connect(bar, &QScrollBar::rangeChanged, this, &Minimap::follow);
  }
  connect(&canvas, &GraphCanvas::zoomed, this, &Minimap::follow);
  connect(&canvas.graph(), &QGraphicsScene::sceneRectChanged, this, &Minimap::follow);
  hide();
}

double Minimap::scale() const {
  const QRectF all = canvas_.graph().picture();
  const QSize room = canvas_.viewport()->size();
  const double side =
      std::min<double>(kLongestSide, kPartOfCanvas * std::min(room.width(), room.height()));
  return side / std::max({all.width(), all.height(), 1.0});
}

QRectF Minimap::frame() const {
  const QRectF all = canvas_.graph().picture();
  const QRectF seen = canvas_.mapToScene(canvas_.viewport()->rect()).boundingRect() & all;
  const double s = scale();
  return {(seen.left() - all.left()) * s, (seen.top() - all.top()) * s, seen.width() * s,
          seen.height() * s};
}

bool Minimap::is_all_seen() const {
  const QRectF all = canvas_.graph().picture();
  const QRectF seen = canvas_.mapToScene(canvas_.viewport()->rect()).boundingRect() & all;
  return all.isEmpty() || canvas_.graph().node_places().empty() ||
         (seen.width() >= kSeenWhole * all.width() && seen.height() >= kSeenWhole * all.height());
}

void Minimap::follow() {
  const QRectF all = canvas_.graph().picture();
  const QSize room = canvas_.viewport()->size();
  const bool wanted = !is_all_seen() && std::min(room.width(), room.height()) >= kLeastCanvas;
  setVisible(wanted);
  if (!wanted) return;
  resize((all.size() * scale()).toSize().expandedTo({20, 20}));
  move(canvas_.viewport()->width() - width() - kMapMargin, kMapMargin);
  raise();
  update();
}

void Minimap::paintEvent(QPaintEvent*) {
  if (is_all_seen()) {  // the canvas has become larger since, and did not say so
    QTimer::singleShot(0, this, &Minimap::follow);
    return;
  }
  QPainter painter(this);
  const Theme theme(canvas_.palette());
  const QRectF all = canvas_.graph().picture();
  QColor back = theme.background();
  back.setAlpha(230);
  painter.fillRect(rect(), back);
  painter.setRenderHint(QPainter::Antialiasing);
  painter.save();
  painter.scale(scale(), scale());
  painter.translate(-all.topLeft());
  painter.setPen(Qt::NoPen);
  for (const NodePlace& node : canvas_.graph().node_places()) {
    painter.setBrush(theme.colour(node.is_lit ? Colour{ColourRole::highlight, 0} : node.colour));
    painter.drawRect(node.box);
  }
  painter.restore();
  QColor line = theme.colour(ColourRole::highlight);
  painter.setPen(QPen(line, 1.5));
  line.setAlpha(30);
  painter.setBrush(line);
  painter.drawRect(frame().adjusted(1, 1, -1, -1));
  painter.setBrush(Qt::NoBrush);
  painter.setPen(
      QPen(hasFocus() ? theme.colour(ColourRole::highlight) : theme.outline(), hasFocus() ? 2 : 1));
  painter.drawRect(QRectF(rect()).adjusted(0.5, 0.5, -0.5, -0.5));
}

void Minimap::go(QPoint at) {
  const QRectF all = canvas_.graph().picture();
  canvas_.go_to(all.topLeft() + QPointF(at) / scale());
}

void Minimap::mousePressEvent(QMouseEvent* event) {
  event->accept();
  go(event->pos());
}

void Minimap::mouseMoveEvent(QMouseEvent* event) {
  event->accept();
  if (event->buttons().testFlag(Qt::LeftButton)) go(event->pos());
}

void Minimap::mouseReleaseEvent(QMouseEvent* event) { event->accept(); }

void Minimap::wheelEvent(QWheelEvent* event) { event->accept(); }

void Minimap::keyPressEvent(QKeyEvent* event) {
  const QRectF seen = frame();
  QPointF to = seen.center();
  switch (event->key()) {
    case Qt::Key_Left:
      to.rx() -= kKeyStep * seen.width();
      break;
    case Qt::Key_Right:
      to.rx() += kKeyStep * seen.width();
      break;
    case Qt::Key_Up:
      to.ry() -= kKeyStep * seen.height();
      break;
    case Qt::Key_Down:
      to.ry() += kKeyStep * seen.height();
      break;
    default:
      QWidget::keyPressEvent(event);
      return;
  }
  const QRectF all = canvas_.graph().picture();
  canvas_.go_to(all.topLeft() + to / scale());
}

bool Minimap::eventFilter(QObject* watched, QEvent* event) {
  // The canvas takes its new size after this, and may fit the graph into it.
  if (event->type() == QEvent::Resize) QTimer::singleShot(0, this, &Minimap::follow);
  return QWidget::eventFilter(watched, event);
}

}  // namespace fuseline::gui
