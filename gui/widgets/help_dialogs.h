// The sheet of shortcuts and the glossary.
#pragma once

#include <QDialog>
#include <QString>
#include <vector>

class QAction;

namespace fuseline::gui {

struct Shortcut {
  QString keys;
  QString text;
};

// Those of the actions, then what mouse and keyboard do in the views.
std::vector<Shortcut> shortcuts_of(const std::vector<QAction*>& actions);
std::vector<Shortcut> gestures();

// Both stay beside the window until they are closed, and delete themselves then.
QDialog* shortcut_sheet(const std::vector<QAction*>& actions, QWidget* parent);
QDialog* glossary_dialog(QWidget* parent);

}  // namespace fuseline::gui
