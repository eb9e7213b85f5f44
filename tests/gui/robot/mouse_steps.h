// Steps of a script that are done with the mouse.
#pragma once

#include <QString>
#include <optional>
#include <utility>

#include "tests/gui/robot/places.h"

namespace fuseline::gui::robot {

// Before the first colon, and after it.
std::pair<QString, QString> parts(const QString& value);

// Where the step points; empty: it is no step of the mouse, or its place cannot be seen yet.
std::optional<Place> place_of(const MainWindow& window, const QString& name, const QString& value);

// False: it is no step of the mouse.
bool act_with_mouse(MainWindow& window, const QString& name, const QString& value);

}  // namespace fuseline::gui::robot
