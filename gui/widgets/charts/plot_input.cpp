// What a person does to a chart with mouse and keyboard.
#include <QApplication>
#include <QRubberBand>
#include <QToolTip>

#include "gui/widgets/charts/mark_layer.h"
#include "gui/widgets/charts/plot.h"

namespace fuseline::gui {

namespace {

constexpr double kStepIn = 0.6;  // of the axes that one step of zoom leaves

QString rich(const std::string& text) {
  return QString::fromStdString(text).toHtmlEscaped().replace(QLatin1Char('\n'),
                                                              QStringLiteral("<br>"));
}

}  // namespace

void Plot::hover_thing(const Thing& thing) {
  if (thing == hovered_) return;
  hovered_ = thing;
  emit hovered(thing);
}

void Plot::hover_at(const QPointF& at, const QPoint& global) {
  const std::optional<Hit> under = hit(at);
  hover_thing(under ? under->thing : Thing{});
  if (under && !under->tooltip.empty()) {
    QToolTip::showText(global, QStringLiteral("<p style='white-space:pre'>") + rich(under->tooltip),
                       this, under->area.toAlignedRect().adjusted(-2, -2, 2, 2));
  } else {
    QToolTip::hideText();
  }
}

void Plot::mousePressEvent(QMouseEvent* event) {
  if (event->button() != Qt::LeftButton) return;
  pressed_ = event->pos();
  dragging_ = false;
}

void Plot::mouseMoveEvent(QMouseEvent* event) {
  if (!pressed_ || (event->buttons() & Qt::LeftButton) == 0) {
    hover_at(event->localPos(), event->globalPos());
    return;
  }
  const bool far =
      (event->pos() - *pressed_).manhattanLength() >= QApplication::startDragDistance();
  if (!dragging_ && !(far && axisRect()->rect().contains(*pressed_))) return;
  dragging_ = true;
  QRect area = QRect(*pressed_, event->pos()).normalized() & axisRect()->rect();
  if (!scene_.y.zooms) {
    area.setTop(axisRect()->top());
    area.setBottom(axisRect()->bottom());
  }
  band_->setGeometry(area);
  band_->show();
}

void Plot::mouseReleaseEvent(QMouseEvent* event) {
  if (event->button() != Qt::LeftButton || !pressed_) return;
  pressed_.reset();
  if (dragging_) {
    dragging_ = false;
    band_->hide();
    zoom_into(band_->geometry());
    return;
  }
  const std::optional<Hit> under = hit(event->localPos());
  emit selected(under ? under->thing : Thing{});
}

void Plot::mouseDoubleClickEvent(QMouseEvent* event) {
  if (event->button() == Qt::LeftButton) zoom_back();
}

void Plot::wheelEvent(QWheelEvent* event) {
  if ((event->modifiers() & Qt::ControlModifier) == 0 || event->angleDelta().y() == 0) {
    event->ignore();
    return;
  }
  zoom_about(event->position(), event->angleDelta().y() > 0 ? kStepIn : 2.0);
  event->accept();
}

void Plot::step(int by) {
  const QVector<Hit> things = marks_->things();
  if (things.isEmpty()) return;
  const int n = static_cast<int>(things.size());
  current_ = current_ < 0 ? (by > 0 ? 0 : n - 1) : (current_ + by + n) % n;
  hover_thing(things[current_].thing);
  const QRect area = things[current_].area.toAlignedRect();
  QToolTip::showText(mapToGlobal(area.center()),
                     QStringLiteral("<p style='white-space:pre'>") + rich(things[current_].tooltip),
                     this);
}

void Plot::keyPressEvent(QKeyEvent* event) {
  switch (event->key()) {
    case Qt::Key_Right:
    case Qt::Key_Down:
      step(1);
      break;
    case Qt::Key_Left:
    case Qt::Key_Up:
      step(-1);
      break;
    case Qt::Key_Return:
    case Qt::Key_Enter:
    case Qt::Key_Space:
      emit selected(hovered_);
      break;
    case Qt::Key_Plus:
      zoom_about(axisRect()->center(), kStepIn);
      break;
    case Qt::Key_Minus:
    case Qt::Key_Backspace:
      zoom_back();
      break;
    case Qt::Key_Escape:
      if (!is_zoomed() && hovered_.is_nothing()) {
        event->ignore();
        return;
      }
      zoom_out();
      current_ = -1;
      hover_thing({});
      break;
    default:
      QCustomPlot::keyPressEvent(event);
  }
}

void Plot::leaveEvent(QEvent* event) {
  QCustomPlot::leaveEvent(event);
  hover_thing({});
}

void Plot::focusInEvent(QFocusEvent* event) {
  QCustomPlot::focusInEvent(event);
  update();
}

void Plot::focusOutEvent(QFocusEvent* event) {
  QCustomPlot::focusOutEvent(event);
  current_ = -1;
  update();
}

void Plot::paintEvent(QPaintEvent* event) {
  take_back();  // somebody paints a hidden chart
  QCustomPlot::paintEvent(event);
  if (!hasFocus()) return;
  QPainter painter(this);
  painter.setPen(QPen(palette().color(QPalette::Highlight), 1));
  painter.drawRect(rect().adjusted(0, 0, -1, -1));
}

}  // namespace fuseline::gui
