// What draws the parts of a moving picture, and the part that is L2.
#pragma once

#include <QFont>
#include <QImage>
#include <QPainter>

#include "gui/widgets/charts/motion_drawing.h"

namespace fuseline::gui {

struct MotionBrush {
  MotionBrush(QPainter& painter, const Theme& colours, const QFont& font, MotionPicture& into);

  // Elided where there is no room; the whole text can be pointed at then.
  void put(const QFont& font, ColourRole role, const QRectF& place, const std::string& text);
  void draw_image(const QRectF& place, const QImage& image);

  QPainter& p;
  const Theme& theme;
  MotionPicture& picture;
  QFont small, bold, heading;
  double line = 0;  // height of small text, px
};

// What L2 holds, matrix by matrix, chunk by chunk.
void draw_l2(MotionBrush& brush, const QRectF& area, const MovingTrack& moving,
             const MotionFrame& frame);

}  // namespace fuseline::gui
