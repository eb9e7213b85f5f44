#include "gui/widgets/view.h"

#include <QEvent>
#include <QFontMetrics>
#include <QPainter>

namespace fuseline::gui {

View::View(Workbench& bench, QWidget* parent) : QWidget(parent), bench_(bench) {}

int View::paint_title(QPainter& painter, QSize size, const QString& title) const {
  const Theme t = theme();
  painter.fillRect(QRect(QPoint(), size), t.background());
  painter.setFont(heading_font(font()));
  painter.setPen(t.colour(ColourRole::text));
  const int height = QFontMetrics(painter.font()).height() + 2 * kPictureMargin;
  painter.drawText(QRect(kPictureMargin, 0, size.width() - 2 * kPictureMargin, height),
                   Qt::AlignLeft | Qt::AlignVCenter, title);
  return height;
}

void View::changeEvent(QEvent* event) {
  QWidget::changeEvent(event);
  if (event->type() == QEvent::PaletteChange || event->type() == QEvent::FontChange) restyle();
}

void View::leaveEvent(QEvent* event) {
  QWidget::leaveEvent(event);
  emit hovered({});
}

}  // namespace fuseline::gui
