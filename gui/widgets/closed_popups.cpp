#include "gui/widgets/closed_popups.h"

#include <QApplication>
#include <QWidget>
#include <QWindow>

namespace fuseline::gui {

namespace {

// QWidget::destroy() frees what the platform holds of a widget, and keeps the widget. It is
// protected, and popups are of Qt's own classes: this opens it for them.
struct OpenedWidget : QWidget {
  using QWidget::destroy;
};

}  // namespace

void give_up_closed_popups() {
  for (QWidget* widget : QApplication::topLevelWidgets()) {
    const bool closed = widget->isHidden() && widget->windowType() == Qt::Popup;
    if (closed && widget->windowHandle() != nullptr) (widget->*&OpenedWidget::destroy)(true, true);
  }
}

}  // namespace fuseline::gui
