// Where on the window a step of a script points, and the events that a display would send there.
#pragma once

#include <QPoint>
#include <QString>
#include <optional>

#include "gui/widgets/main_window.h"

namespace fuseline::gui::robot {

// Nothing is computed or drawn any more, and no dialog is open.
bool is_ready(const MainWindow& window);

// A place in a window of the program: the main one, a popup, a dialog.
struct Place {
  QWidget* widget = nullptr;
  QPoint at;  // in the widget
};

void move_to(const Place& place, Qt::MouseButton held = Qt::NoButton);
void press(const Place& place, Qt::KeyboardModifiers keys = {});
void release(const Place& place, Qt::KeyboardModifiers keys = {});
void click(const Place& place, Qt::KeyboardModifiers keys = {});

// Empty: it is not there, or cannot be seen; then the robot waits for it.
std::optional<Place> edge_place(const MainWindow& window, const QString& edge);
std::optional<Place> operator_place(const MainWindow& window, const QString& name);
std::optional<Place> empty_place(const MainWindow& window);  // of the graph
std::optional<Place> run_place(const MainWindow& window, const QString& name);
// The middle of a visible widget of that object name.
std::optional<Place> widget_place(const MainWindow& window, const QString& name);
// A button, an action's button or a menu's entry: by object name or by what it says. Menus that are
// closed have none.
std::optional<Place> button_place(const MainWindow& window, const QString& name);
// A row of the table, list or popup that is called so, by what it says.
std::optional<Place> row_place(const MainWindow& window, const QString& view, const QString& text);
// The menu of the menu bar, or the entry of an open menu, that says so.
std::optional<Place> menu_place(const MainWindow& window, const QString& text);
// The tab of a view; where it lies outside of the bar, the arrow that scrolls towards it.
struct TabPlace {
  Place place;
  bool is_arrow = false;
};
std::optional<TabPlace> tab_place(const MainWindow& window, const QString& view);

// What a widget says: a label, a button, a text, a table's cells, a box's choice.
QString text_of(const MainWindow& window, const QString& name);
// By object name, or as VIEW/NAME by the accessible name within a view. Null: no visible one.
QWidget* named(const MainWindow& window, const QString& name);

}  // namespace fuseline::gui::robot
