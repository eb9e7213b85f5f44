#include "gui/widgets/graph_columns.h"

#include <QPainter>
#include <algorithm>
#include <cmath>
#include <optional>

#include "gui/widgets/graph_scene.h"
#include "gui/widgets/theme.h"

namespace fuseline::gui {

namespace {

constexpr int kMostColumns = 4;
constexpr double kBetween = 12;    // of the page, between two columns
constexpr double kWorthIt = 1.15;  // one more column has to make it larger by so much

QRectF turned(const QRectF& r) { return {r.y(), r.x(), r.height(), r.width()}; }

// A part without boxes, from one side of the page's width to the other.
struct FreePart {
  double from = 0, to = 0;
  [[nodiscard]] double middle() const { return (from + to) / 2; }
};

std::vector<FreePart> free_parts(std::vector<QRectF> boxes) {
  std::ranges::sort(boxes, {}, [](const QRectF& b) { return b.top(); });
  std::vector<FreePart> free;
  double down_to = boxes.empty() ? 0 : boxes.front().top();
  for (const QRectF& box : boxes) {
    if (box.top() > down_to) free.push_back({down_to, box.top()});
    down_to = std::max(down_to, box.bottom());
  }
  return free;
}

// From top to bottom; none where it cannot be cut into so many.
std::vector<QRectF> cut_into(const QRectF& all, const std::vector<FreePart>& free, int count) {
  std::vector<QRectF> columns;
  double top = all.top(), after = all.top();
  for (int i = 1; i < count; ++i) {
    const double wanted = all.top() + all.height() * i / count;
    const FreePart* best = nullptr;
    for (const FreePart& part : free)
      if (part.from > after &&
          (best == nullptr || std::abs(part.middle() - wanted) < std::abs(best->middle() - wanted)))
        best = &part;
    if (best == nullptr) return {};
    columns.emplace_back(all.left(), top, all.width(), best->to - top);
    top = best->from;
    after = best->to;
  }
  columns.emplace_back(all.left(), top, all.width(), all.bottom() - top);
  return columns;
}

double scale_of(const std::vector<QRectF>& columns, QSizeF area) {
  const auto count = static_cast<double>(columns.size());
  double longest = 0;
  for (const QRectF& c : columns) longest = std::max(longest, c.height());
  return std::min((area.width() - (count - 1) * kBetween) / (count * columns.front().width()),
                  area.height() / longest);
}

}  // namespace

std::vector<QRectF> graph_columns(const QRectF& all, const std::vector<QRectF>& boxes,
                                  QSizeF area) {
  const bool lies = all.width() > all.height();
  std::vector<QRectF> upright = boxes;
  if (lies)
    for (QRectF& box : upright) box = turned(box);
  const QRectF whole = lies ? turned(all) : all;
  const QSizeF page = lies ? area.transposed() : area;
  const std::vector<FreePart> free = free_parts(upright);
  std::vector<QRectF> best{whole};
  for (int count = 2; count <= kMostColumns && scale_of(best, page) < kReadableScale; ++count) {
    std::vector<QRectF> columns = cut_into(whole, free, count);
    if (!columns.empty() && scale_of(columns, page) > kWorthIt * scale_of(best, page))
      best = std::move(columns);
  }
  if (lies)
    for (QRectF& column : best) column = turned(column);
  return best;
}

void paint_graph(QPainter& painter, GraphScene& scene, const QRectF& area, const Theme& theme) {
  const QRectF all = scene.picture();
  std::vector<QRectF> boxes;
  for (const NodePlace& node : scene.node_places()) boxes.push_back(node.box);
  const std::vector<QRectF> columns = graph_columns(all, boxes, area.size());
  const bool lies = all.width() > all.height();
  double wide = 0, high = 0;  // of all of them, without what is between
  for (const QRectF& c : columns) {
    wide = lies ? std::max(wide, c.width()) : wide + c.width();
    high = lies ? high + c.height() : std::max(high, c.height());
  }
  const double between = kBetween * static_cast<double>(columns.size() - 1);
  const double scale = std::min((area.width() - (lies ? 0 : between)) / wide,
                                (area.height() - (lies ? between : 0)) / high);
  QPointF at(area.left() + (area.width() - wide * scale - (lies ? 0 : between)) / 2,
             area.top() + (area.height() - high * scale - (lies ? between : 0)) / 2);
  for (std::size_t i = 0; i < columns.size(); ++i) {
    const QRectF place(at, columns[i].size() * scale);
    if (i > 0) {
      painter.setPen(QPen(theme.colour(ColourRole::muted), 1, Qt::DotLine));
      const double line = (lies ? at.y() : at.x()) - kBetween / 2;
      if (lies) {
        painter.drawLine(QPointF(area.left(), line), QPointF(area.right(), line));
      } else {
        painter.drawLine(QPointF(line, area.top()), QPointF(line, area.bottom()));
      }
    }
    scene.render(&painter, place, columns[i], Qt::KeepAspectRatio);
    if (lies) {
      at.ry() += place.height() + kBetween;
    } else {
      at.rx() += place.width() + kBetween;
    }
  }
}

}  // namespace fuseline::gui
