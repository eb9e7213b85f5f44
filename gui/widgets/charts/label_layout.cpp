#include "gui/widgets/charts/label_layout.h"

#include <algorithm>
#include <array>

namespace fuseline::gui {

bool LabelLayout::is_free(const QRectF& area) const {
  return area_.contains(area) && std::none_of(taken_.begin(), taken_.end(),
                                              [&](const QRectF& t) { return t.intersects(area); });
}

std::optional<QRectF> LabelLayout::place(const QSizeF& size, const QPointF& at, double radius) {
  constexpr double kGap = 3;
  const double r = radius + kGap;
  const double d = 0.7 * r;
  const double w = size.width(), h = size.height();
  const std::array<QPointF, 8> offsets = {{
      {r, -h / 2},       // right
      {d, -d - h},       // above right
      {d, d},            // below right
      {-w / 2, -r - h},  // above
      {-w / 2, r},       // below
      {-r - w, -h / 2},  // left
      {-d - w, -d - h},  // above left
      {-d - w, d},       // below left
  }};
  for (const QPointF& offset : offsets) {
    const QRectF candidate(at + offset, size);
    if (!is_free(candidate)) continue;
    taken_.append(candidate);
    return candidate;
  }
  return std::nullopt;
}

}  // namespace fuseline::gui
