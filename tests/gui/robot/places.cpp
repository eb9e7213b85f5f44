#include "tests/gui/robot/places.h"

#include <QAbstractButton>
#include <QAbstractItemView>
#include <QApplication>
#include <QComboBox>
#include <QDockWidget>
#include <QLabel>
#include <QLineEdit>
#include <QMenu>
#include <QMenuBar>
#include <QPlainTextEdit>
#include <QTabBar>
#include <QTableView>
#include <QTest>
#include <QTextBrowser>
#include <QToolButton>
#include <QWindow>

#include "gui/widgets/qt_text.h"
#include "model/custom_fusion.h"

namespace fuseline::gui::robot {

namespace {

struct InWindow {
  QWindow* window;
  QPoint at;
};

InWindow in_window(const Place& place) {
  QWidget* top = place.widget->window();
  return {top->windowHandle(), place.widget->mapTo(top, place.at)};
}

QString plain(QString text) { return text.remove('&').section('\t', 0, 0); }

bool says(const QString& text, const QString& wanted) {
  return plain(text).startsWith(wanted, Qt::CaseInsensitive);
}

// Every widget of the window, its dialogs and open popups, by name.
template <class W>
QList<W*> visible(const MainWindow& window, const QString& name = {}) {
  QList<W*> found;
  const auto take = [&](const QWidget& top) {
    const QList<W*> there = name.isEmpty() ? top.findChildren<W*>() : top.findChildren<W*>(name);
    for (W* w : there)
      if (w->isVisible() && !w->visibleRegion().isEmpty()) found << w;
  };
  for (QWidget* top : QApplication::topLevelWidgets())
    if (top->isVisible() && top != &window) take(*top);
  take(window);
  return found;
}

Place middle(QWidget& widget) { return {&widget, widget.rect().center()}; }

QAbstractItemView* item_view(const MainWindow& window, const QString& name) {
  if (const auto views = visible<QAbstractItemView>(window, name); !views.isEmpty())
    return views.front();
  for (const QComboBox* box : visible<QComboBox>(window, name))
    if (box->view()->isVisible()) return box->view();
  return nullptr;
}

QString cells_of(const QAbstractItemModel& model, const QModelIndex& parent = {}) {
  QString text;
  for (int row = 0; row < model.rowCount(parent); ++row) {
    for (int column = 0; column < model.columnCount(parent); ++column)
      text += model.index(row, column, parent).data().toString() + " ";
    text += "\n";
  }
  return text;
}

}  // namespace

void move_to(const Place& place, Qt::MouseButton held) {
  const InWindow there = in_window(place);
  if (held == Qt::NoButton) {
    QTest::mouseMove(there.window, there.at);
    return;
  }
  // QTest's move holds no button.
  QMouseEvent event(QEvent::MouseMove, place.at, there.window->mapToGlobal(there.at), Qt::NoButton,
                    held, {});
  QApplication::sendEvent(place.widget, &event);
}

void press(const Place& place, Qt::KeyboardModifiers keys) {
  const InWindow there = in_window(place);
  QTest::mousePress(there.window, Qt::LeftButton, keys, there.at);
}

void release(const Place& place, Qt::KeyboardModifiers keys) {
  const InWindow there = in_window(place);
  QTest::mouseRelease(there.window, Qt::LeftButton, keys, there.at);
}

void click(const Place& place, Qt::KeyboardModifiers keys) {
  const InWindow there = in_window(place);
  QTest::mouseMove(there.window, there.at);
  QTest::mouseClick(there.window, Qt::LeftButton, keys, there.at);
}

bool is_ready(const MainWindow& window) {
  for (const View* view : window.views()) {
    if (view->is_busy() && view->isVisible()) return false;
  }
  return window.is_idle() && QApplication::activeModalWidget() == nullptr;
}

std::optional<Place> edge_place(const MainWindow& window, const QString& text) {
  const GraphCanvas& canvas = window.graph().canvas();
  const EdgeItem* edge = canvas.graph().find_edge(parse_edge(from_qt(text), "edge"));
  if (edge == nullptr) return std::nullopt;
  return Place{canvas.viewport(), canvas.mapFromScene(edge->middle())};
}

std::optional<Place> operator_place(const MainWindow& window, const QString& name) {
  const GraphCanvas& canvas = window.graph().canvas();
  const QRectF box = canvas.graph().operator_place(from_qt(name));
  if (box.isNull()) return std::nullopt;
  return Place{canvas.viewport(), canvas.mapFromScene(box.center())};
}

std::optional<Place> empty_place(const MainWindow& window) {
  const GraphCanvas& canvas = window.graph().canvas();
  for (int y = 20; y < canvas.viewport()->height(); y += 20) {
    const QPoint at(10, y);
    if (canvas.graph().kernel_at(canvas.mapToScene(at)).empty())
      return Place{canvas.viewport(), at};
  }
  return std::nullopt;
}

std::optional<Place> run_place(const MainWindow& window, const QString& name) {
  const RunPanel& runs = window.runs();
  for (int row = 0; row < runs.model().rowCount(); ++row) {
    const QModelIndex index = runs.model().index(row, RunModel::name);
    if (index.data().toString() != name) continue;
    return Place{runs.table().viewport(), runs.table().visualRect(index).center()};
  }
  return std::nullopt;
}

QWidget* named(const MainWindow& window, const QString& name) {
  if (const auto found = visible<QWidget>(window, name); !found.isEmpty()) return found.front();
  const QString view = name.section('/', 0, 0), called = name.section('/', 1);
  const View* inside = called.isEmpty() ? nullptr : window.view(view);
  if (inside == nullptr) return nullptr;
  for (QWidget* widget : inside->findChildren<QWidget*>())
    if (widget->accessibleName() == called && widget->isVisible()) return widget;
  return nullptr;
}

std::optional<Place> widget_place(const MainWindow& window, const QString& name) {
  QWidget* widget = named(window, name);
  if (widget == nullptr) {
    if (View* view = window.view(name); view != nullptr && view->isVisible()) widget = view;
  }
  return widget == nullptr ? std::nullopt : std::optional(middle(*widget));
}

std::optional<Place> button_place(const MainWindow& window, const QString& name) {
  for (QAbstractButton* button : visible<QAbstractButton>(window)) {
    const auto* tool = qobject_cast<QToolButton*>(button);
    const QAction* action = tool == nullptr ? nullptr : tool->defaultAction();
    const bool same = button->objectName() == name || plain(button->text()) == name ||
                      (action != nullptr && action->objectName() == name);
    if (same && button->isEnabled()) return middle(*button);
  }
  return std::nullopt;
}

std::optional<Place> row_place(const MainWindow& window, const QString& view, const QString& text) {
  QAbstractItemView* items = item_view(window, view);
  if (items == nullptr) return std::nullopt;
  const QAbstractItemModel& model = *items->model();
  for (int row = 0; row < model.rowCount(); ++row) {
    for (int column = 0; column < model.columnCount(); ++column) {
      const QModelIndex index = model.index(row, column);
      if (!index.data().toString().contains(text)) continue;
      items->scrollTo(index);
      const QRect box = items->visualRect(index);
      if (box.isEmpty()) continue;
      return Place{items->viewport(),
                   {box.left() + std::min(box.width() / 2, 30), box.center().y()}};
    }
  }
  return std::nullopt;
}

std::optional<Place> menu_place(const MainWindow& window, const QString& text) {
  for (QMenu* menu : visible<QMenu>(window))
    for (QAction* action : menu->actions())
      if (says(action->text(), text) && action->isEnabled())
        return Place{menu, menu->actionGeometry(action).center()};
  for (QWidget* top : QApplication::topLevelWidgets()) {
    auto* menu = qobject_cast<QMenu*>(top);
    if (menu == nullptr || !menu->isVisible()) continue;
    for (QAction* action : menu->actions())
      if (says(action->text(), text) && action->isEnabled())
        return Place{menu, menu->actionGeometry(action).center()};
  }
  QMenuBar* bar = window.menuBar();
  for (QAction* action : bar->actions())
    if (says(action->text(), text)) return Place{bar, bar->actionGeometry(action).center()};
  return std::nullopt;
}

std::optional<TabPlace> tab_place(const MainWindow& window, const QString& view) {
  const View* wanted = window.view(view);
  const QDockWidget* panel = window.findChild<QDockWidget*>("dock-" + view);
  const QString title = wanted != nullptr  ? wanted->title()
                        : panel != nullptr ? panel->windowTitle()
                                           : view;
  for (QTabBar* bar : window.findChildren<QTabBar*>(QString(), Qt::FindDirectChildrenOnly)) {
    if (!bar->isVisible()) continue;
    for (int i = 0; i < bar->count(); ++i) {
      if (bar->tabText(i) != title) continue;
      QRect room = bar->rect();
      QToolButton *back = nullptr, *on = nullptr;
      for (QToolButton* arrow : bar->findChildren<QToolButton*>()) {
        if (!arrow->isVisible()) continue;
        room.setRight(std::min(room.right(), arrow->x() - 1));
        (arrow->arrowType() == Qt::LeftArrow ? back : on) = arrow;
      }
      const QRect tab = bar->tabRect(i);
      if (room.contains(tab.center())) return TabPlace{{bar, tab.center()}, false};
      QToolButton* arrow = tab.center().x() < room.left() ? back : on;
      if (arrow == nullptr || !arrow->isEnabled()) return std::nullopt;
      return TabPlace{middle(*arrow), true};
    }
  }
  return std::nullopt;
}

QString text_of(const MainWindow& window, const QString& name) {
  if (name == "strip") return window.graph().edit_bar().text();
  if (name == "carried") return window.graph().drag().text();
  QWidget* widget = named(window, name);
  if (widget == nullptr) return {};
  if (const auto* label = qobject_cast<QLabel*>(widget)) return label->text();
  if (const auto* button = qobject_cast<QAbstractButton*>(widget)) return button->text();
  if (const auto* line = qobject_cast<QLineEdit*>(widget)) return line->text();
  if (const auto* box = qobject_cast<QComboBox*>(widget)) return box->currentText();
  if (const auto* text = qobject_cast<QPlainTextEdit*>(widget)) return text->toPlainText();
  if (const auto* text = qobject_cast<QTextBrowser*>(widget)) return text->toPlainText();
  if (const auto* items = qobject_cast<QAbstractItemView*>(widget))
    return cells_of(*items->model());
  QString all;
  for (const QLabel* label : widget->findChildren<QLabel*>()) all += label->text() + "\n";
  return all;
}

}  // namespace fuseline::gui::robot
