#include <fmt/format.h>

#include <QImage>
#include <QPaintEngine>
#include <QPainter>
#include <algorithm>
#include <cmath>

#include "gui/model/text.h"
#include "gui/widgets/charts/canvas.h"
#include "gui/widgets/charts/motion_brush.h"
#include "gui/widgets/qt_text.h"

namespace fuseline::gui {

namespace {

constexpr double kLeastCell = 46;   // px, room for a short name
constexpr double kNameCosts = 0.6;  // of the matrices' size at least is left beside whole names

struct CellColours {
  QRgb absent, clean, dirty, came_in, left;
};

CellColours cell_colours(const Theme& theme) {
  return {theme.surface().rgb(),
          mixed(theme.background(), theme.colour(ColourRole::tensor_activation), 0.75).rgb(),
          theme.colour(ColourRole::bound_l2).rgb(), theme.colour(ColourRole::on_chip).rgb(),
          theme.colour(ColourRole::highlight).rgb()};
}

class L2Drawing {
 public:
  L2Drawing(MotionBrush& brush, const MovingTrack& moving, const MotionFrame& frame)
      : brush_(brush), moving_(moving), frame_(frame) {
    // A matrix is called after one tensor after the other: its place is the same for all of them.
    for (const std::size_t m : moving.matrices) {
      double widest = kLeastCell;
      for (const RecordedMatrix::Name& name : moving.track.record->matrices[m].names)
        widest = std::max(widest, std::ceil(text_width(brush.bold, to_qt(name.tensor))));
      names_.push_back(widest);
    }
  }

  void draw(const QRectF& area) {
    const WalkRecord& r = *moving_.track.record;
    const std::string held =
        fmt::format("L2: {} of {}", short_bytes(frame_.resident), short_bytes(r.capacity));
    brush_.put(brush_.bold, ColourRole::text, {area.left(), area.top(), area.width(), brush_.line},
               {held + ", " + short_bytes(frame_.evicted) + " evicted", held,
                "L2: " + short_bytes(frame_.resident), "L2"});
    const bool crowded = area.height() < 9 * brush_.line;  // no room for a legend as well
    const double legend = crowded ? 0 : legend_height(area.width());
    if (!crowded) draw_legend({area.left(), area.bottom() - legend, area.width(), legend});
    const QRectF place = area.adjusted(0, brush_.line + 2, 0, -legend - 2);
    const double low = scale_for(place);
    if (frame_.step) moving_.cursor->go_to(*frame_.step, frame_.part);
    const CellColours colours = cell_colours(brush_.theme);
    std::size_t left_out = 0;
    for (const Placed& m : place_matrices(place, low)) {
      if (m.at.bottom() > place.bottom() + 1) {
        ++left_out;
        continue;
      }
      draw_matrix(m, place, colours);
    }
    if (left_out > 0)
      brush_.picture.parts.push_back(
          {area, fmt::format("{} matrices have no room here", left_out)});
  }

 private:
  // Shelves of matrices, as large as there is room, with the longer side lying.
  struct Placed {
    std::size_t matrix;
    QRectF at;
    bool turned;
    double name;  // px, room for it
  };
  [[nodiscard]] std::vector<Placed> place_matrices(const QRectF& area, double scale) const {
    std::vector<Placed> all;
    double x = area.left(), y = area.top(), shelf = 0;
    for (std::size_t i = 0; i < moving_.matrices.size(); ++i) {
      const std::size_t m = moving_.matrices[i];
      const RecordedMatrix& matrix = moving_.track.record->matrices[m];
      const bool turned = matrix.row_blocks > matrix.col_blocks;
      const double w = std::max(
          3.0, scale * static_cast<double>(turned ? matrix.row_blocks : matrix.col_blocks));
      const double h = std::max(
          3.0, scale * static_cast<double>(turned ? matrix.col_blocks : matrix.row_blocks));
      const double cell =
          std::max(w, whole_names_ ? std::min(names_[i], area.width()) : kLeastCell);
      if (x > area.left() && x + cell > area.right()) {
        x = area.left();
        y += shelf + brush_.line + 3;
        shelf = 0;
      }
      all.push_back({m, {x, y + brush_.line, w, h}, turned, cell});
      x += cell + 6;
      shelf = std::max(shelf, h);
    }
    return all;
  }

  [[nodiscard]] double largest_scale(const QRectF& place) const {
    const auto fits = [&](double scale) {
      return std::ranges::all_of(place_matrices(place, scale), [&](const Placed& m) {
        return m.at.right() <= place.right() + 0.5 && m.at.bottom() <= place.bottom() + 0.5;
      });
    };
    double low = 0, high = 6;
    for (int i = 0; i < 14; ++i) {
      const double middle = (low + high) / 2;
      (fits(middle) ? low : high) = middle;
    }
    return low;
  }
  // With whole names where the matrices do not become much smaller for them.
  double scale_for(const QRectF& place) {
    const double largest = largest_scale(place);
    whole_names_ = true;
    const double beside_names = largest_scale(place);
    if (beside_names > 0 && beside_names >= kNameCosts * largest) return beside_names;
    whole_names_ = false;
    return largest;
  }

  void draw_matrix(const Placed& placed, const QRectF& place, const CellColours& colours) {
    const RecordedMatrix& matrix = moving_.track.record->matrices[placed.matrix];
    const auto w = static_cast<int>(placed.turned ? matrix.row_blocks : matrix.col_blocks);
    const auto h = static_cast<int>(placed.turned ? matrix.col_blocks : matrix.row_blocks);
    QImage image(w, h, QImage::Format_RGB32);
    for (int y = 0; y < h; ++y) {
      auto* line = reinterpret_cast<QRgb*>(image.scanLine(y));
      for (int x = 0; x < w; ++x) {
        switch (moving_.cursor->cell(placed.matrix, placed.turned ? x : y, placed.turned ? y : x)) {
          case L2Cursor::Cell::absent:
            line[x] = colours.absent;
            break;
          case L2Cursor::Cell::clean:
            line[x] = colours.clean;
            break;
          case L2Cursor::Cell::dirty:
            line[x] = colours.dirty;
            break;
          case L2Cursor::Cell::came_in:
            line[x] = colours.came_in;
            break;
          case L2Cursor::Cell::left:
            line[x] = colours.left;
            break;
        }
      }
    }
    brush_.draw_image(placed.at, image);
    const RecordedPhase* now =
        frame_.phase ? &moving_.track.record->phases[*frame_.phase] : nullptr;
    const auto number = static_cast<std::uint32_t>(placed.matrix);
    const bool loaded =
        now != nullptr && std::ranges::find(now->loaded, number) != now->loaded.end();
    const bool stored =
        now != nullptr && std::ranges::find(now->stored, number) != now->stored.end();
    const std::string& name = matrix.name_at(frame_.phase.value_or(0));
    brush_.put(loaded || stored ? brush_.bold : brush_.small,
               loaded || stored ? ColourRole::text : ColourRole::muted,
               {placed.at.left(), placed.at.top() - brush_.line,
                std::min(placed.name, place.right() - placed.at.left()), brush_.line},
               name);
    brush_.picture.parts.push_back(
        {placed.at,
         fmt::format("{}\n{} of {} chunks of 64 × 64 are in L2{}", name,
                     moving_.cursor->held(placed.matrix), matrix.row_blocks * matrix.col_blocks,
                     stored   ? "\nthis kernel stores it"
                     : loaded ? "\nthis kernel loads it"
                              : "")});
  }

  struct Entry {
    const char* text;
    QColor colour;
  };
  [[nodiscard]] std::vector<Entry> entries() const {
    const CellColours c = cell_colours(brush_.theme);
    return {{"in L2", QColor(c.clean)},
            {"not in HBM yet", QColor(c.dirty)},
            {"comes in", QColor(c.came_in)},
            {"leaves", QColor(c.left)}};
  }
  [[nodiscard]] double entry_width(const Entry& e) const {
    return text_width(brush_.small, QString::fromLatin1(e.text)) + brush_.line + 12;
  }
  [[nodiscard]] double legend_height(double width) const {
    double x = 0, lines = 1;
    for (const Entry& e : entries()) {
      if (x > 0 && x + entry_width(e) > width) {
        x = 0;
        ++lines;
      }
      x += entry_width(e);
    }
    return lines * (brush_.line + 2);
  }
  void draw_legend(const QRectF& area) {
    double x = 0, y = area.top();
    for (const Entry& e : entries()) {
      if (x > 0 && x + entry_width(e) > area.width()) {
        x = 0;
        y += brush_.line + 2;
      }
      brush_.p.setPen(Qt::NoPen);
      brush_.p.setBrush(e.colour);
      brush_.p.drawRect(QRectF(area.left() + x, y + 2, brush_.line - 4, brush_.line - 4));
      brush_.put(brush_.small, ColourRole::muted,
                 {area.left() + x + brush_.line, y, entry_width(e) - brush_.line, brush_.line},
                 e.text);
      x += entry_width(e);
    }
  }

  MotionBrush& brush_;
  const MovingTrack& moving_;
  const MotionFrame& frame_;
  std::vector<double> names_;  // px, of the widest name of each matrix
  bool whole_names_ = false;
};

}  // namespace

MotionBrush::MotionBrush(QPainter& painter, const Theme& colours, const QFont& font,
                         MotionPicture& into)
    : p(painter),
      theme(colours),
      picture(into),
      small(in_pixels(small_font(font))),
      bold(small),
      heading(in_pixels(heading_font(font))),
      line(text_height(small)) {
  bold.setWeight(QFont::Bold);
}

void MotionBrush::put(const QFont& font, ColourRole role, const QRectF& place,
                      const std::vector<std::string>& texts) {
  p.setFont(font);
  p.setPen(theme.colour(role));
  const QFontMetricsF metrics(font);
  const auto fits = [&](const std::string& text) {
    return metrics.horizontalAdvance(to_qt(text)) <= place.width();
  };
  const auto first = std::ranges::find_if(texts, fits);
  const QString text = to_qt(first == texts.end() ? texts.back() : *first);
  const QString shown =
      first == texts.end() ? metrics.elidedText(text, Qt::ElideRight, place.width()) : text;
  p.drawText(place, int(Qt::AlignLeft) | int(Qt::AlignVCenter), shown);
  if (first == texts.end()) picture.elided.push_back(texts.front());
  if (first != texts.begin()) picture.parts.push_back({place, texts.front()});
}

void MotionBrush::draw_image(const QRectF& place, const QImage& image) {
  const QPaintEngine* engine = p.paintEngine();
  if (engine != nullptr && engine->type() == QPaintEngine::Raster) {
    p.setRenderHint(QPainter::SmoothPixmapTransform, false);
    p.drawImage(place, image);
  } else {  // vectors stay vectors: a rectangle for each run of one colour
    const double w = place.width() / image.width(), h = place.height() / image.height();
    for (int y = 0; y < image.height(); ++y) {
      for (int x = 0, end = 0; x < image.width(); x = end) {
        while (end < image.width() && image.pixel(end, y) == image.pixel(x, y)) ++end;
        p.fillRect(QRectF(place.left() + x * w, place.top() + y * h, (end - x) * w, h),
                   QColor(image.pixel(x, y)));
      }
    }
  }
  p.setPen(QPen(theme.outline(), 1));
  p.setBrush(Qt::NoBrush);
  p.drawRect(place);
}

void draw_l2(MotionBrush& brush, const QRectF& area, const MovingTrack& moving,
             const MotionFrame& frame) {
  L2Drawing(brush, moving, frame).draw(area);
}

}  // namespace fuseline::gui
