// Everything that can be pressed or chosen is reached by Tab or has keys of its own, and says what
// it is.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <QAbstractButton>
#include <QAbstractSlider>
#include <QComboBox>
#include <QDockWidget>
#include <QLineEdit>
#include <QScrollBar>
#include <QTabBar>
#include <QToolButton>

#include "tests/gui/widgets/window_support.h"

namespace fuseline::gui {
namespace {

using test::Window;

// Parts that Qt makes: the arrows beside tabs, buttons of docks, what belongs to a larger control.
bool is_of_qt(const QWidget& widget) {
  const QWidget* parent = widget.parentWidget();
  return qobject_cast<const QTabBar*>(parent) != nullptr ||
         qobject_cast<const QDockWidget*>(parent) != nullptr ||
         widget.objectName().startsWith("qt_") ||
         qobject_cast<const QScrollBar*>(&widget) != nullptr ||
         qobject_cast<const QComboBox*>(parent) != nullptr;
}

std::string name_of_control(const QWidget& widget) {
  if (!widget.accessibleName().isEmpty()) return widget.accessibleName().toStdString();
  if (const auto* button = qobject_cast<const QAbstractButton*>(&widget))
    return button->text().toStdString();
  if (const auto* line = qobject_cast<const QLineEdit*>(&widget))
    return line->placeholderText().toStdString();
  return widget.toolTip().toStdString();
}

TEST(Keyboard, ReachesEveryControlOfEveryView) {
  Window window(test::window_document({"eager", "coda"}));
  int seen = 0;
  for (View* view : window->views()) {
    window->raise_view(view->id());
    window.settle();
    for (const QWidget* widget : window->findChildren<QWidget*>()) {
      const bool control = qobject_cast<const QAbstractButton*>(widget) != nullptr ||
                           qobject_cast<const QAbstractSlider*>(widget) != nullptr ||
                           qobject_cast<const QComboBox*>(widget) != nullptr ||
                           qobject_cast<const QLineEdit*>(widget) != nullptr;
      if (!control || !widget->isVisible() || is_of_qt(*widget)) continue;
      ++seen;
      const std::string what = view->id().toStdString() + ": " + widget->metaObject()->className() +
                               " " + widget->objectName().toStdString() + " '" +
                               name_of_control(*widget) + "'";
      EXPECT_NE(widget->focusPolicy() & Qt::TabFocus, 0) << what;
      EXPECT_NE(name_of_control(*widget), "") << what;
    }
    // The view itself takes the focus, or something in it does.
    view->setFocus();
    QWidget* focus = QApplication::focusWidget();
    EXPECT_TRUE(focus != nullptr && (focus == view || view->isAncestorOf(focus)))
        << view->id().toStdString();
  }
  EXPECT_GT(seen, 100);
}

}  // namespace
}  // namespace fuseline::gui
