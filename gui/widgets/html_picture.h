// Formatted text as a picture: made smaller where it is longer than its room.
#pragma once

#include <QFont>
#include <QSize>
#include <QString>

#include "gui/widgets/theme.h"

class QPainter;

namespace fuseline::gui {

// The body of an HTML page; the background is filled.
void paint_html(QPainter& painter, QSize size, const QString& body, const Theme& theme,
                const QFont& font);

}  // namespace fuseline::gui
