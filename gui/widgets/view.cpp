#include "gui/widgets/view.h"

#include <QEvent>

namespace fuseline::gui {

View::View(Workbench& bench, QWidget* parent) : QWidget(parent), bench_(bench) {}

void View::changeEvent(QEvent* event) {
  QWidget::changeEvent(event);
  if (event->type() == QEvent::PaletteChange || event->type() == QEvent::FontChange) restyle();
}

void View::leaveEvent(QEvent* event) {
  QWidget::leaveEvent(event);
  emit hovered({});
}

}  // namespace fuseline::gui
