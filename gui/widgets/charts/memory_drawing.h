// Draws memory hierarchies beside each other: registers on top, HBM at the bottom.
#pragma once

#include <QFont>
#include <QRectF>
#include <vector>

#include "gui/model/memory_chart.h"
#include "gui/widgets/theme.h"

class QPainter;

namespace fuseline::gui {

struct MemoryPart {  // what can be hovered
  QRectF area;
  Thing thing;
  std::string tooltip;
};

// As many charts as have room, from the first on, one column each.
std::vector<MemoryPart> draw_memory(QPainter& painter, const QRectF& area,
                                    const std::vector<MemoryChart>& charts, const Theme& theme,
                                    const QFont& font, const Highlight& highlight);

// How many of them a width has room for.
std::size_t memory_columns(double width, std::size_t charts, const QFont& font);

}  // namespace fuseline::gui
