// A graph that is much longer than wide, on a page.
#pragma once

#include <QRectF>
#include <QSizeF>
#include <vector>

class QPainter;

namespace fuseline::gui {

class GraphScene;
class Theme;

// Parts of `all`, one after the other along its longer side, that are drawn beside each other.
// Where the whole of it would be drawn smaller than kReadableScale, more parts make it larger. They
// are cut where no box lies, and what goes on is drawn in both.
constexpr double kReadableScale = 0.75;
std::vector<QRectF> graph_columns(const QRectF& all, const std::vector<QRectF>& boxes, QSizeF area);

// The whole graph into the area, in such parts.
void paint_graph(QPainter& painter, GraphScene& scene, const QRectF& area, const Theme& theme);

}  // namespace fuseline::gui
