// Where the docks of the window are, and that they are there again next time.
#include <QDockWidget>
#include <QSettings>
#include <QShowEvent>
#include <QTabBar>
#include <QToolBar>
#include <QToolButton>
#include <algorithm>

#include "gui/widgets/main_window.h"
#include "gui/widgets/qt_text.h"

namespace fuseline::gui {

namespace {

const char* const kDark = "dark";
const char* const kSettings = "window.ini";
constexpr int kLayoutVersion = 6;  // raised when docks come or go
const QStringList kLeft = {"runs", "setup", "details"};
const QStringList kBelowCharts = {"kernels", "program", "code",       "plan",
                                  "block",   "sweep",   "validation", "missions"};

}  // namespace

void MainWindow::arrange_docks() {
  for (QDockWidget* d : docks_) {
    d->setFloating(false);
    removeDockWidget(d);
  }
  setCorner(Qt::BottomLeftCorner, Qt::LeftDockWidgetArea);
  setCorner(Qt::BottomRightCorner, Qt::RightDockWidgetArea);
  for (const QString& id : kLeft) addDockWidget(Qt::LeftDockWidgetArea, dock(id));
  tabifyDockWidget(dock("setup"), dock("what-if"));
  QDockWidget* first_above = nullptr;
  QDockWidget* first_below = nullptr;
  // Above first: the order of the views is that of their tabs.
  for (const bool above : {true, false}) {
    QDockWidget*& first = above ? first_above : first_below;
    QStringList ids = kBelowCharts;
    if (above) {
      ids.clear();
      for (const View* v : views_) {
        if (v != graph_ && !kBelowCharts.contains(v->id())) ids << v->id();
      }
    }
    for (const QString& id : ids) {
      QDockWidget* d = dock(id);
      if (d == nullptr) continue;
      if (first == nullptr) {
        addDockWidget(Qt::RightDockWidgetArea, d, Qt::Vertical);
        first = d;
      } else {
        tabifyDockWidget(first, d);
      }
    }
  }
  for (QDockWidget* d : docks_) d->show();
  dock("setup")->raise();
  if (first_above != nullptr) first_above->raise();
  dock("kernels")->raise();
  const int left = std::clamp(width() * 27 / 100, 260, 480);
  const int right = std::clamp(width() * 41 / 100, 300, 1600);
  resizeDocks({dock("runs")}, {left}, Qt::Horizontal);
  if (first_above != nullptr) {
    resizeDocks({first_above}, {right}, Qt::Horizontal);
    resizeDocks({first_above, dock("kernels")}, {height() * 58 / 100, height() * 42 / 100},
                Qt::Vertical);
  } else {
    resizeDocks({dock("kernels")}, {right}, Qt::Horizontal);
  }
  resizeDocks({dock("runs"), dock("setup"), dock("details")},
              {height() * 30 / 100, height() * 34 / 100, height() * 30 / 100}, Qt::Vertical);
}

// Tabs that are too many scroll: a name of two letters says nothing.
void MainWindow::name_tabs() {
  for (QTabBar* tabs : findChildren<QTabBar*>(QString(), Qt::FindDirectChildrenOnly)) {
    tabs->setElideMode(Qt::ElideNone);
    tabs->setUsesScrollButtons(true);
  }
}

void MainWindow::reset_layout() {
  arrange_docks();
  name_tabs();
}

void MainWindow::restore_layout() {
  const QSettings settings(to_qt(settings_file_), QSettings::IniFormat);
  const bool placed = restoreGeometry(settings.value("geometry").toByteArray());
  static_cast<void>(placed);
  if (!restoreState(settings.value("docks").toByteArray(), kLayoutVersion)) arrange_docks();
}

void MainWindow::store_layout() const {
  QSettings settings(to_qt(settings_file_), QSettings::IniFormat);
  settings.setValue("geometry", saveGeometry());
  settings.setValue("docks", saveState(kLayoutVersion));
}

void MainWindow::store_colours(bool dark) const {
  QSettings(to_qt(settings_file_), QSettings::IniFormat).setValue(kDark, dark);
}

std::optional<bool> chosen_colours(const std::filesystem::path& state_folder) {
  const QSettings settings(to_qt(state_folder / kSettings), QSettings::IniFormat);
  const QVariant dark = settings.value(kDark);
  return dark.isValid() ? std::optional(dark.toBool()) : std::nullopt;
}

void MainWindow::showEvent(QShowEvent* event) {
  QMainWindow::showEvent(event);
  if (arranged_) return;
  arranged_ = true;
  restore_layout();
  name_tabs();
  // Qt leaves the buttons of tool bars out of the order of Tab.
  for (QToolBar* bar : findChildren<QToolBar*>())
    for (QToolButton* button : bar->findChildren<QToolButton*>())
      button->setFocusPolicy(Qt::TabFocus);
}

}  // namespace fuseline::gui
