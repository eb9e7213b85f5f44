#include "gui/widgets/charts/motion_drawing.h"

#include <fmt/format.h>

#include <QFontMetricsF>
#include <QImage>
#include <QPainter>
#include <algorithm>
#include <cmath>

#include "gui/model/chart_colours.h"
#include "gui/model/text.h"
#include "gui/widgets/charts/canvas.h"
#include "gui/widgets/charts/motion_brush.h"
#include "gui/widgets/qt_text.h"

namespace fuseline::gui {

namespace {

constexpr double kEdge = 10;         // px around a track
constexpr double kBetweenPanes = 6;  // px between its parts
constexpr double kStrip = 14;        // px, of the kernels below a track
constexpr double kLowLines = 9;      // lines of text
constexpr double kLargest = 14;      // px, of a tile or SM

class TrackDrawing : private MotionBrush {
 public:
  TrackDrawing(QPainter& painter, const QRectF& area, const MovingTrack& moving, Seconds now,
               Bytes most_bytes, std::optional<std::size_t> lit, const Theme& colours,
               const QFont& font, MotionPicture& into)
      : MotionBrush(painter, colours, font, into),
        area_(area.adjusted(kEdge, kEdge / 2, -kEdge, -kEdge / 2)),
        moving_(moving),
        most_bytes_(most_bytes),
        lit_(lit) {
    if (moving_.track.record) frame_ = frame_at(moving_.track, moving_.span, now);
  }

  void draw() {
    const MotionTrack& track = moving_.track;
    double top = area_.top();
    const std::string title = track.label + (track.record ? " · " + frame_.kernel : "");
    const bool large = text_width(heading, to_qt(title)) <= area_.width();
    put(large ? heading : bold, ColourRole::text,
        {area_.left(), top, area_.width(), text_height(heading)}, {title, track.label});
    top += text_height(heading) + 2;
    if (!track.record) {
      p.setFont(small);
      p.setPen(theme.colour(ColourRole::muted));
      p.drawText(QRectF(area_.left(), top, area_.width(), area_.bottom() - top),
                 int(Qt::AlignCenter) | int(Qt::TextWordWrap), to_qt(track.problem));
      picture.spoken.push_back(track.label + ": " + track.problem);
      return;
    }
    const std::string time = fmt::format("{} of {}", short_time(frame_.now - moving_.span.begin),
                                         short_time(moving_.span.length()));
    put(small, ColourRole::muted, {area_.left(), top, area_.width(), line},
        {fmt::format("{} · {} · {}", time, frame_.doing, frame_.bound), time + " · " + frame_.doing,
         time + " · " + frame_.doing_brief, frame_.doing_brief});
    top += line + kBetweenPanes;
    const double strip = area_.bottom() - kStrip;
    const double hbm = strip - kBetweenPanes - 2 * line - 4;
    draw_strip({area_.left(), strip, area_.width(), kStrip});
    draw_hbm({area_.left(), hbm, area_.width(), 2 * line + 4});
    const QRectF middle(area_.left(), top, area_.width(), hbm - kBetweenPanes - top);
    // Above each other in a narrow place.
    const bool wide = middle.width() > 1.15 * middle.height();
    QRectF chip = middle, l2 = middle;
    if (wide) {
      chip.setWidth(0.42 * middle.width());
      l2.setLeft(chip.right() + 2 * kBetweenPanes);
    } else {
      chip.setHeight(0.5 * middle.height());
      l2.setTop(chip.bottom() + kBetweenPanes);
    }
    draw_chip(chip);
    draw_l2(*this, l2, moving_, frame_);
    picture.spoken.push_back(fmt::format("{}: {}, {}, HBM {} read and {} written", track.label,
                                         frame_.kernel, frame_.doing, short_bytes(frame_.hbm.read),
                                         short_bytes(frame_.hbm.write)));
  }

 private:
  [[nodiscard]] const RecordedPhase* phase() const {
    return frame_.phase ? &moving_.track.record->phases[*frame_.phase] : nullptr;
  }

  void put_text(const QRectF& place, const MotionText& text) {
    MotionText texts = text;
    texts.emplace_back();  // two runs in a low place: it can be pointed at
    put(small, ColourRole::text, place, texts);
  }

  void draw_chip(const QRectF& area) {
    // A low place has room for tiles and SMs alone.
    const bool low = area.height() < kLowLines * line;
    const double bars = low ? 0 : 2 * (line + 9);
    const double rest = area.height() - bars - 2 * line - 2 * kBetweenPanes;
    // Tiles above SMs, or beside them.
    const bool beside = area.width() > 2.2 * rest;
    QRectF tiles(area.left(), area.top(), area.width(), line + (beside ? rest + line : 0.5 * rest));
    QRectF sms(area.left(), tiles.bottom() + kBetweenPanes, area.width(), line + 0.5 * rest);
    if (beside) {
      tiles.setWidth(area.width() / 2 - kBetweenPanes);
      sms = tiles.translated(area.width() / 2 + kBetweenPanes, 0);
    }
    draw_tiles(tiles);
    draw_sms(sms);
    if (low) return;
    const double top = area.bottom() - bars;
    draw_share({area.left(), top, area.width(), line + 7}, "shared memory", frame_.shared_share,
               frame_.shared_text, ColourRole::bound_smem);
    draw_share({area.left(), top + line + 9, area.width(), line + 7}, "registers",
               frame_.registers_share, frame_.registers_text, ColourRole::bound_tensor);
  }

  // The result, as far as it is made.
  void draw_tiles(const QRectF& area) {
    put_text({area.left(), area.top(), area.width(), line}, frame_.tiles_text);
    if (frame_.tile_rows == 0) return;
    const QRectF place = area.adjusted(0, line, 0, 0);
    const double size =
        std::min({place.width() / static_cast<double>(frame_.tile_cols),
                  place.height() / static_cast<double>(frame_.tile_rows), kLargest});
    const QRgb waiting = theme.surface().rgb();
    const QRgb running = theme.colour(ColourRole::on_chip).rgb();
    const QRgb done =
        mixed(theme.background(), theme.colour(ColourRole::tensor_activation), 0.6).rgb();
    QImage image(static_cast<int>(frame_.tile_cols), static_cast<int>(frame_.tile_rows),
                 QImage::Format_RGB32);
    for (std::size_t i = 0; i < frame_.tiles.size(); ++i) {
      const auto at = static_cast<std::int64_t>(i);
      image.setPixel(static_cast<int>(at % frame_.tile_cols),
                     static_cast<int>(at / frame_.tile_cols),
                     frame_.tiles[i] == TileState::done      ? done
                     : frame_.tiles[i] == TileState::running ? running
                                                             : waiting);
    }
    const QRectF drawn(place.left(), place.top(), size * static_cast<double>(frame_.tile_cols),
                       std::min(place.height(), size * static_cast<double>(frame_.tile_rows)));
    draw_image(drawn, image);
    const RecordedPhase* now = phase();
    if (now == nullptr || now->units.empty()) return;
    if (lit_ && *lit_ < now->units.size()) {
      const auto tile = static_cast<std::int64_t>(tile_of_unit(*now, *lit_));
      const std::int64_t row = tile / frame_.tile_cols, col = tile % frame_.tile_cols;
      p.setPen(QPen(theme.colour(ColourRole::highlight), 2));
      p.setBrush(Qt::NoBrush);
      p.drawRect(QRectF(drawn.left() + size * static_cast<double>(col),
                        drawn.top() + size * static_cast<double>(row), size, size)
                     .adjusted(-1, -1, 1, 1));
    }
  }

  void draw_sms(const QRectF& area) {
    put_text({area.left(), area.top(), area.width(), line}, frame_.sms_text);
    const QRectF place = area.adjusted(0, line + 1, 0, 0);
    const auto count = static_cast<double>(moving_.track.sms);
    if (place.height() < 4 || count < 1) return;
    // As many columns as make the squares largest.
    double columns = 1, size = 0;
    for (double c = 1; c <= count; ++c) {
      const double s =
          std::min({place.width() / c, place.height() / std::ceil(count / c), kLargest});
      if (s >= size) {
        size = s;
        columns = c;
      }
    }
    const QColor idle = theme.surface();
    const QColor busy = theme.colour(ColourRole::on_chip);
    const QColor storing = theme.colour(ColourRole::tensor_output);
    const RecordedPhase* now = phase();
    p.setPen(Qt::NoPen);
    for (std::size_t i = 0; i < static_cast<std::size_t>(moving_.track.sms); ++i) {
      const auto at = static_cast<double>(i);
      const QRectF box(place.left() + size * std::fmod(at, columns),
                       place.top() + size * std::floor(at / columns), size - 1.5, size - 1.5);
      p.setBrush(idle);
      p.drawRect(box);
      if (i >= frame_.sms.size()) continue;
      const MotionSm& sm = frame_.sms[i];
      // It fills from below as the tile's sums grow along k.
      p.setBrush(sm.storing ? storing : busy);
      p.drawRect(box.adjusted(0, (1 - sm.progress) * box.height(), 0, 0));
      if (lit_ == sm.unit) {
        p.setPen(QPen(theme.colour(ColourRole::highlight), 2));
        p.setBrush(Qt::NoBrush);
        p.drawRect(box);
        p.setPen(Qt::NoPen);
      }
      if (now == nullptr) continue;
      picture.parts.push_back(
          {box,
           fmt::format("thread block {} of this wave\n{}\n{}", i + 1, unit_text(*now, sm.unit),
                       sm.storing ? "epilogue" : fmt::format("k at {:.0f} %", 100 * sm.progress)),
           sm.unit});
    }
  }

  void draw_share(const QRectF& area, const std::string& what, double share, const MotionText& text,
                  ColourRole role) {
    const bool runs = !frame_.sms.empty();
    put(small, runs ? ColourRole::text : ColourRole::muted,
        {area.left(), area.top(), area.width(), line},
        runs ? MotionText{what + ": " + text.front(), what + ": " + text.back()}
             : MotionText{what + ": not told for this kernel", what + ": not told"});
    const QRectF bar(area.left(), area.top() + line + 1, area.width(), 5);
    p.setPen(Qt::NoPen);
    p.setBrush(theme.surface());
    p.drawRect(bar);
    if (!runs) return;
    QRectF used = bar;
    used.setWidth(bar.width() * std::min(1.0, share));
    p.setBrush(theme.colour(role));
    p.drawRect(used);
  }

  void draw_hbm(const QRectF& area) {
    const Bytes all = frame_.hbm.read + frame_.hbm.write;
    const std::string moved = fmt::format("HBM: {} read, {} written", short_bytes(frame_.hbm.read),
                                          short_bytes(frame_.hbm.write));
    put(bold, ColourRole::text, {area.left(), area.top(), area.width(), line},
        {frame_.rate.value() > 0 ? moved + ", now at " + short_rate(frame_.rate) : moved, moved,
         fmt::format("HBM: {} moved", short_bytes(all)), "HBM: " + short_bytes(all)});
    const QRectF bar(area.left(), area.top() + line + 2, area.width(), line);
    p.setPen(Qt::NoPen);
    p.setBrush(theme.surface());
    p.drawRect(bar);
    const double scale = bar.width() / std::max(1.0, most_bytes_.as_double());
    QRectF read = bar;
    read.setWidth(scale * frame_.hbm.read.as_double());
    p.setBrush(theme.colour(ColourRole::bound_hbm));
    p.drawRect(read);
    QRectF written(read.right(), bar.top(), scale * frame_.hbm.write.as_double(), bar.height());
    p.setBrush(theme.colour(ColourRole::bound_l2));
    p.drawRect(written);
    picture.parts.push_back(
        {bar, fmt::format("{} read\n{} written\n{} in all", exact_bytes(frame_.hbm.read),
                          exact_bytes(frame_.hbm.write), exact_bytes(all))});
  }

  // The span's kernels in the order of their launches; a line where the picture is.
  void draw_strip(const QRectF& area) {
    const WalkRecord& r = *moving_.track.record;
    const double length = std::max(1e-12, moving_.span.length().value());
    p.setPen(Qt::NoPen);
    p.setBrush(theme.surface());
    p.drawRect(area);
    for (std::size_t i = 0; i < r.launches.size(); ++i) {
      const RecordedLaunch& l = r.launches[i];
      if (l.start + l.time <= moving_.span.begin || l.start >= moving_.span.end) continue;
      const double left = (l.start - moving_.span.begin).value() / length * area.width();
      const double width = l.time.value() / length * area.width();
      const QRectF box(area.left() + left, area.top(), std::max(1.0, width - 1), area.height());
      const KernelEstimate& e = r.estimate.kernels[i];
      const QColor colour = theme.colour(role_of(e.bound));
      p.setPen(Qt::NoPen);
      p.setBrush(i == frame_.launch ? colour : theme.faded(colour));
      p.drawRect(box);
      picture.parts.push_back({box, fmt::format("{}\n{}", e.name, short_time(e.time)), std::nullopt,
                               l.start - moving_.span.begin, l.time});
    }
    const double x =
        area.left() + (frame_.now - moving_.span.begin).value() / length * area.width();
    p.setPen(QPen(theme.colour(ColourRole::text), 2));
    p.drawLine(QPointF(x, area.top() - 3), QPointF(x, area.bottom()));
  }

  QRectF area_;
  const MovingTrack& moving_;
  Bytes most_bytes_;
  std::optional<std::size_t> lit_;
  MotionFrame frame_;
};

}  // namespace

MovingTrack moving(MotionTrack track, const std::set<std::size_t>& launches) {
  MovingTrack m{std::move(track), {}, {}, nullptr};
  if (!m.track.record) return m;
  m.span = span_of(*m.track.record, launches);
  m.matrices = matrices_of(m.track.record, m.span);
  m.cursor = std::make_shared<L2Cursor>(m.track.record);
  return m;
}

std::vector<MovingKernel> kernels_at(const std::vector<MovingTrack>& tracks, Seconds now) {
  std::vector<MovingKernel> moving;
  for (const MovingTrack& t : tracks)
    if (t.track.record)
      moving.push_back({t.track.run, launch_at(*t.track.record, t.span.begin + now)});
  return moving;
}

MotionPicture draw_motion(QPainter& painter, const QRectF& area,
                          const std::vector<MovingTrack>& tracks, Seconds now,
                          std::optional<std::size_t> lit, const Theme& theme, const QFont& font) {
  MotionPicture picture;
  painter.fillRect(area, theme.background());
  Bytes most;
  for (const MovingTrack& m : tracks) {
    if (!m.track.record) continue;
    const MotionFrame last = frame_at(m.track, m.span, m.span.length());
    most = std::max(most, last.hbm.read + last.hbm.write);
  }
  const auto count = static_cast<double>(std::max<std::size_t>(1, tracks.size()));
  const bool beside = area.width() > 0.9 * area.height();
  for (std::size_t i = 0; i < tracks.size(); ++i) {
    const auto at = static_cast<double>(i);
    const QRectF own = beside ? QRectF(area.left() + at * area.width() / count, area.top(),
                                       area.width() / count, area.height())
                              : QRectF(area.left(), area.top() + at * area.height() / count,
                                       area.width(), area.height() / count);
    TrackDrawing(painter, own, tracks[i], now, most, i == 0 ? lit : std::nullopt, theme, font,
                 picture)
        .draw();
  }
  return picture;
}

}  // namespace fuseline::gui
