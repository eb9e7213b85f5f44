// Places labels beside what they name so that none lies over another.
#pragma once

#include <QPointF>
#include <QRectF>
#include <QSizeF>
#include <QVector>
#include <optional>

namespace fuseline::gui {

class LabelLayout {
 public:
  explicit LabelLayout(const QRectF& area) : area_(area) {}

  // Nothing is placed over it.
  void keep_free(const QRectF& area) { taken_.append(area); }
  [[nodiscard]] bool is_free(const QRectF& area) const;
  // Beside a disc of that radius (px): to the right if there is room, else on another side, and
  // takes the place. Empty where every side is taken or outside of the area.
  std::optional<QRectF> place(const QSizeF& size, const QPointF& at, double radius);

 private:
  QRectF area_;
  QVector<QRectF> taken_;
};

}  // namespace fuseline::gui
