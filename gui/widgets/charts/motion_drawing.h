// Draws one moment of one or two walks: the result's tiles, the SMs, L2 chunk by chunk, HBM.
#pragma once

#include <QFont>
#include <QRectF>
#include <optional>
#include <vector>

#include "gui/model/motion.h"
#include "gui/widgets/theme.h"

class QPainter;

namespace fuseline::gui {

// What is drawn of a run, and how far it is.
struct MovingTrack {
  MotionTrack track;
  MotionSpan span{};
  std::vector<std::size_t> matrices{};
  std::shared_ptr<L2Cursor> cursor{};
};
MovingTrack moving(MotionTrack track, const std::set<std::size_t>& launches);
// Of the tracks that have a walk; `now`: since the spans began.
std::vector<MovingKernel> kernels_at(const std::vector<MovingTrack>& tracks, Seconds now);

struct MotionPart {  // what can be pointed at
  QRectF area;
  std::string tooltip;
  std::optional<std::size_t> unit{};  // of which GEMM tile it is
  std::optional<Seconds> time{};      // of a strip of kernels: where its left end is, since the
                                      // span's begin
  Seconds length{};
};

struct MotionPicture {
  std::vector<MotionPart> parts;
  std::vector<std::string> spoken;  // one sentence a track
  std::vector<std::string> elided;  // texts of which even the brief form had no room
};

// `now`: since the spans began. `lit`: the tile that is pointed at. The bytes of all tracks are
// drawn to one scale.
MotionPicture draw_motion(QPainter& painter, const QRectF& area,
                          const std::vector<MovingTrack>& tracks, Seconds now,
                          std::optional<std::size_t> lit, const Theme& theme, const QFont& font);

}  // namespace fuseline::gui
