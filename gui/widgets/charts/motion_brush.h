// What draws the parts of a moving picture, and the part that is L2.
#pragma once

#include <QFont>
#include <QImage>
#include <QPainter>
#include <string>
#include <vector>

#include "gui/widgets/charts/motion_drawing.h"

namespace fuseline::gui {

struct MotionBrush {
  MotionBrush(QPainter& painter, const Theme& colours, const QFont& font, MotionPicture& into);

  // The first of the texts that has room, the longest stands first; the last one is elided where
  // none has. The longest can be pointed at where it is not what stands there.
  void put(const QFont& font, ColourRole role, const QRectF& place,
           const std::vector<std::string>& texts);
  void put(const QFont& font, ColourRole role, const QRectF& place, const std::string& text) {
    put(font, role, place, std::vector<std::string>{text});
  }
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
