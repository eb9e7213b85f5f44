#include "gui/widgets/charts/memory_drawing.h"

#include <QFontMetricsF>
#include <QPainter>
#include <algorithm>
#include <cmath>

#include "gui/widgets/charts/canvas.h"

namespace fuseline::gui {

namespace {

constexpr double kMargin = 12;
constexpr double kWidestColumn = 460;
constexpr double kThinnestArrow = 2, kWidestArrow = 16;

QString qt(const std::string& text) { return QString::fromStdString(text); }

class Column {
 public:
  Column(QPainter& p, const QRectF& area, const Theme& theme, const QFont& font,
         const Highlight& highlight, Bytes widest, std::vector<MemoryPart>& parts)
      : p_(p), area_(area), theme_(theme), highlight_(highlight), widest_(widest), parts_(parts) {
    small_ = in_pixels(small_font(font));
    bold_ = small_;
    bold_.setWeight(QFont::Bold);
    heading_ = in_pixels(heading_font(font));
    line_ = text_height(small_);
  }

  void draw(const MemoryChart& chart) {
    double top = area_.top();
    p_.setFont(heading_);
    p_.setPen(theme_.colour(ColourRole::text));
    text(QRectF(area_.left(), top, area_.width(), text_height(heading_)), Qt::AlignLeft,
         chart.title);
    top += text_height(heading_) + 8;
    if (!chart.problem.empty() || chart.boxes.empty()) {
      p_.setFont(small_);
      p_.setPen(theme_.colour(ColourRole::muted));
      p_.drawText(QRectF(area_.left(), top, area_.width(), area_.bottom() - top),
                  int(Qt::AlignCenter) | int(Qt::TextWordWrap), qt(chart.problem));
      return;
    }
    const double n = static_cast<double>(chart.boxes.size());
    const double height = area_.bottom() - top;
    const double least_box = 2 * line_ + 14;
    // Boxes take what the texts need and grow slower than the arrows between them.
    const double box = std::max(least_box, std::min(0.58 * height / n, 2.2 * least_box));
    const double gap = std::max(8.0, (height - n * box) / (n - 1));
    std::vector<QRectF> places;
    for (std::size_t i = 0; i < chart.boxes.size(); ++i) {
      places.emplace_back(area_.left(), top + static_cast<double>(i) * (box + gap), area_.width(),
                          box);
    }
    const auto place_of = [&](MemoryLevel level) {
      for (std::size_t i = 0; i < chart.boxes.size(); ++i) {
        if (chart.boxes[i].level == level) return places[i];
      }
      return QRectF();
    };
    for (const MemoryArrow& a : chart.arrows) draw_arrow_of(a, place_of(a.from), place_of(a.to));
    for (std::size_t i = 0; i < chart.boxes.size(); ++i) draw_box(chart.boxes[i], places[i]);
  }

 private:
  // Of all columns together, so that they compare.
  [[nodiscard]] double width_of(const MemoryArrow& a) const {
    return widest_ > Bytes(0) ? std::sqrt(a.bytes.as_double() / widest_.as_double()) : 0;
  }

  void text(const QRectF& place, Qt::Alignment alignment, const std::string& what) {
    const QFontMetricsF metrics(p_.font());
    p_.drawText(place, static_cast<int>(alignment) | int(Qt::AlignVCenter),
                metrics.elidedText(qt(what), Qt::ElideRight, place.width()));
  }

  void draw_box(const MemoryBox& box, const QRectF& place) {
    const QColor colour = theme_.colour(box.colour);
    const bool lit = highlight_.levels.contains(box.level);
    p_.setBrush(theme_.surface());
    p_.setPen(lit             ? QPen(theme_.colour(ColourRole::highlight), 2.5)
              : box.sets_time ? QPen(colour, 2)
                              : QPen(theme_.outline(), 1));
    p_.drawRoundedRect(place, 5, 5);
    parts_.push_back({place, box.thing, box.tooltip});

    const QRectF inside = place.adjusted(8, 5, -8, -5);
    const QRectF first(inside.left(), inside.top(), inside.width(), line_);
    p_.setFont(bold_);
    const std::string& name = box.label;
    const double wanted = text_width(bold_, qt(name)) + 8;
    p_.setPen(theme_.colour(ColourRole::text));
    text(first, Qt::AlignLeft, name);
    if (wanted + text_width(small_, qt(box.capacity)) <= first.width()) {
      p_.setFont(small_);
      p_.setPen(theme_.colour(ColourRole::muted));
      text(first, Qt::AlignRight, box.capacity);
    }

    // The bar of utilisation with its text below it, or on it where there is no room below.
    const double room = inside.bottom() - first.bottom() - 4;
    const bool below = room >= 1.5 * line_;
    const double bar_height = std::max(line_ / 2, below ? room - line_ - 2 : room);
    const QRectF bar(inside.left(), first.bottom() + 4, inside.width(), bar_height);
    p_.setPen(Qt::NoPen);
    p_.setBrush(theme_.faded(theme_.colour(ColourRole::gap)));
    p_.drawRoundedRect(bar, 3, 3);
    QRectF used = bar;
    used.setWidth(bar.width() * box.utilisation);
    p_.setBrush(colour);
    p_.drawRoundedRect(used, 3, 3);
    const std::string words_text = box.utilisation_text + (box.sets_time ? " · sets the time" : "");
    p_.setFont(bold_);
    if (below) {
      p_.setPen(theme_.colour(ColourRole::text));
      text(QRectF(bar.left(), inside.bottom() - line_, bar.width(), line_), Qt::AlignLeft,
           words_text);
      return;
    }
    // Twice, so that each half of the text has the contrast of what lies under it.
    const QRectF words = bar.adjusted(6, 0, -6, 0);
    for (const bool over_used : {false, true}) {
      p_.save();
      p_.setClipRect(over_used ? used : bar.adjusted(used.width(), 0, 0, 0), Qt::IntersectClip);
      p_.setPen(over_used ? ink_on(colour) : theme_.colour(ColourRole::text));
      text(words, Qt::AlignLeft, words_text);
      p_.restore();
    }
  }

  void draw_arrow_of(const MemoryArrow& a, const QRectF& from, const QRectF& to) {
    const bool up = from.top() > to.top();
    const bool between_l2_and_hbm = a.from == MemoryLevel::hbm || a.to == MemoryLevel::hbm;
    const double x = area_.left() + area_.width() * (!between_l2_and_hbm ? 0.25 : up ? 0.05 : 0.52);
    const QPointF bottom(x, (up ? from : to).top() - 2), top(x, (up ? to : from).bottom() + 2);
    const double width =
        a.unknown ? 1.5 : kThinnestArrow + (kWidestArrow - kThinnestArrow) * width_of(a);
    const QColor colour = theme_.colour(a.unknown ? ColourRole::muted : ColourRole::ceiling);
    arrow(bottom, top, width, colour, a.unknown, !between_l2_and_hbm || !up,
          !between_l2_and_hbm || up);
    const QString words = qt(a.label);
    const int dot = words.indexOf(QStringLiteral(" · "));
    const double height = bottom.y() - top.y();
    const bool two = dot > 0 && height >= 2 * line_;
    const double room =
        (between_l2_and_hbm && up ? area_.left() + area_.width() * 0.52 - kWidestArrow
                                  : area_.right()) -
        x - kWidestArrow;
    const QRectF place(x + 5 + kWidestArrow / 2, top.y() + (height - (two ? 2 : 1) * line_) / 2,
                       std::max(10.0, room), (two ? 2 : 1) * line_);
    QString what;
    if (between_l2_and_hbm) what = up ? QStringLiteral("read ") : QStringLiteral("written ");
    if (text_width(bold_, what + (two ? words.left(dot) : words)) > place.width()) what.clear();
    p_.setPen(theme_.colour(a.unknown ? ColourRole::muted : ColourRole::text));
    p_.setFont(a.unknown ? small_ : bold_);
    text(QRectF(place.left(), place.top(), place.width(), line_), Qt::AlignLeft,
         (what + (two ? words.left(dot) : words)).toStdString());
    if (two) {
      p_.setFont(small_);
      p_.setPen(theme_.colour(ColourRole::muted));
      text(QRectF(place.left(), place.top() + line_, place.width(), line_), Qt::AlignLeft,
           words.mid(dot + 3).toStdString());
    }
    parts_.push_back({QRectF(x - 10, top.y(), place.right() - x + 10, height), {}, a.tooltip});
  }

  // Filled, with a head at either or both ends.
  void arrow(const QPointF& bottom, const QPointF& top, double width, const QColor& colour,
             bool dashed, bool head_down, bool head_up) {
    const double length = bottom.y() - top.y();
    const double head = std::min(0.4 * length, 5 + 0.7 * width);
    const double wing = width / 2 + 4;
    p_.setPen(QPen(colour, width, dashed ? Qt::DotLine : Qt::SolidLine, Qt::FlatCap));
    p_.drawLine(QPointF(top.x(), top.y() + (head_up ? head - 1 : 0)),
                QPointF(top.x(), bottom.y() - (head_down ? head - 1 : 0)));
    p_.setPen(Qt::NoPen);
    p_.setBrush(colour);
    if (head_up) {
      const QPointF tip[] = {top, top + QPointF(wing, head), top + QPointF(-wing, head)};
      p_.drawPolygon(tip, 3);
    }
    if (head_down) {
      const QPointF tip[] = {bottom, bottom + QPointF(wing, -head), bottom + QPointF(-wing, -head)};
      p_.drawPolygon(tip, 3);
    }
  }

  QPainter& p_;
  QRectF area_;
  const Theme& theme_;
  const Highlight& highlight_;
  Bytes widest_;
  std::vector<MemoryPart>& parts_;
  QFont small_, bold_, heading_;
  double line_ = 0;
};

}  // namespace

std::size_t memory_columns(double width, std::size_t charts, const QFont& font) {
  const double least = 17 * text_height(in_pixels(small_font(font)));
  return std::clamp<std::size_t>(static_cast<std::size_t>(std::max(0.0, width / least)), 1,
                                 std::max<std::size_t>(1, charts));
}

std::vector<MemoryPart> draw_memory(QPainter& painter, const QRectF& area,
                                    const std::vector<MemoryChart>& charts, const Theme& theme,
                                    const QFont& font, const Highlight& highlight) {
  std::vector<MemoryPart> parts;
  painter.save();
  painter.setRenderHints(QPainter::Antialiasing | QPainter::TextAntialiasing);
  painter.fillRect(area, theme.background());
  const QRectF inside = area.adjusted(kMargin, kMargin, -kMargin, -kMargin);
  const std::size_t n = memory_columns(inside.width(), charts.size(), font);
  const double between = 2 * kMargin;
  const double count = static_cast<double>(n);
  const double width = std::min(kWidestColumn, (inside.width() - (count - 1) * between) / count);
  const double left = inside.left();
  Bytes widest;
  for (const MemoryChart& chart : charts) {
    for (const MemoryArrow& a : chart.arrows) widest = std::max(widest, a.bytes);
  }
  if (n < charts.size()) {
    painter.setFont(in_pixels(small_font(font)));
    painter.setPen(theme.colour(ColourRole::muted));
    painter.drawText(inside.adjusted(0, 0, 0, kMargin - 1), int(Qt::AlignRight | Qt::AlignBottom),
                     QStringLiteral("wider pictures show %1 more").arg(charts.size() - n));
  }
  for (std::size_t i = 0; i < std::min(n, charts.size()); ++i) {
    const QRectF column(left + static_cast<double>(i) * (width + between), inside.top(), width,
                        inside.height() - (n < charts.size() ? kMargin / 2 : 0));
    Column(painter, column, theme, font, highlight, widest, parts).draw(charts[i]);
  }
  painter.restore();
  return parts;
}

}  // namespace fuseline::gui
