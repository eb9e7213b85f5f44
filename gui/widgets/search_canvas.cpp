#include "gui/widgets/search_canvas.h"

#include <QHelpEvent>
#include <QKeyEvent>
#include <QMouseEvent>
#include <QPainter>
#include <QPainterPath>
#include <QToolTip>
#include <algorithm>
#include <cmath>

#include "gui/model/text.h"
#include "gui/widgets/qt_text.h"
#include "gui/widgets/theme.h"

namespace fuseline::gui {

namespace {

constexpr std::size_t kMostGhosts = 8;  // that save most
constexpr int kNamedGhosts = 4;         // of these, with a text beside them
constexpr double kCaptionShare = 0.4;   // of the height, for these texts
constexpr int kCaptionFlags = int(Qt::AlignRight) | int(Qt::AlignTop) | int(Qt::TextWordWrap);
constexpr double kHitRadius = 9;  // px
constexpr double kBeyond = 0.35;  // of the best's time: slower plans are at the edge

}  // namespace

SearchCanvas::SearchCanvas(QWidget* parent) : QWidget(parent) {
  setObjectName("search-canvas");
  setFocusPolicy(Qt::StrongFocus);
  setBackgroundRole(QPalette::Base);
  setAutoFillBackground(true);
  setAccessibleName(tr("Plans that the search has tried"));
}

void SearchCanvas::show_state(SearchState state, std::vector<NextEdit> next) {
  state_ = std::move(state);
  next_ = std::move(next);
  if (next_.size() > kMostGhosts) next_.resize(kMostGhosts);
  setAccessibleDescription(to_qt(state_.text));
  focus_ = std::min(focus_, static_cast<int>(targets().size()) - 1);
  update();
}

QPointF SearchCanvas::Axes::at(Seconds time, Bytes hbm) const {
  const double x = std::clamp((time.value() - low_time) / (high_time - low_time), 0.0, 1.0);
  const double y = std::clamp((hbm.as_double() - low_hbm) / (high_hbm - low_hbm), 0.0, 1.0);
  return {plot.left() + x * plot.width(), plot.bottom() - y * plot.height()};
}

// From the best to plans a third slower: those that are far slower would press all others together.
SearchCanvas::Axes SearchCanvas::axes(const QRectF& area) const {
  const double line = QFontMetricsF(font()).height();
  Axes a;
  a.plot = area.adjusted(5.2 * line, line, -line, -2.6 * line);
  if (!state_.best) return a;
  const double best = state_.points[*state_.best].time.value();
  a.low_time = best;
  a.high_time = best * 1.02;
  a.low_hbm = a.high_hbm = state_.points[*state_.best].hbm.as_double();
  const auto take = [&](Seconds time, Bytes hbm) {
    if (time.value() > best * (1 + kBeyond)) return;
    a.low_time = std::min(a.low_time, time.value());
    a.high_time = std::max(a.high_time, time.value());
    a.low_hbm = std::min(a.low_hbm, hbm.as_double());
    a.high_hbm = std::max(a.high_hbm, hbm.as_double());
  };
  for (const SearchPoint& p : state_.points) take(p.time, p.hbm);
  for (const NextEdit& e : next_) take(e.time, e.hbm);
  const double time_room = 0.06 * (a.high_time - a.low_time);
  const double hbm_room = std::max(0.06 * (a.high_hbm - a.low_hbm), 0.01 * a.high_hbm);
  a.low_time -= time_room;
  a.high_time += time_room;
  a.low_hbm -= hbm_room;
  a.high_hbm += hbm_room;
  return a;
}

QPointF SearchCanvas::place_of_point(std::size_t point) const {
  const SearchPoint& p = state_.points[point];
  return axes(rect()).at(p.time, p.hbm);
}

QPointF SearchCanvas::place_of_next(std::size_t edit) const {
  return axes(rect()).at(next_[edit].time, next_[edit].hbm);
}

std::vector<SearchCanvas::Target> SearchCanvas::targets() const {
  std::vector<Target> all;
  for (std::size_t i = 0; i < state_.points.size(); ++i)
    if (state_.points[i].custom) all.push_back({false, i});
  for (std::size_t i = 0; i < next_.size(); ++i) all.push_back({true, i});
  return all;
}

std::optional<SearchCanvas::Target> SearchCanvas::target_at(QPointF at) const {
  std::optional<Target> nearest;
  double least = kHitRadius;
  for (const Target& t : targets()) {
    const QPointF by = (t.is_edit ? place_of_next(t.index) : place_of_point(t.index)) - at;
    const double distance = std::hypot(by.x(), by.y());
    if (distance > least) continue;
    least = distance;
    nearest = t;
  }
  return nearest;
}

QString SearchCanvas::text_of(const Target& t) const {
  if (t.is_edit) return to_qt(next_[t.index].text);
  const SearchPoint& p = state_.points[t.index];
  return tr("plan %1: %2, HBM %3; a click makes it a run")
      .arg(t.index + 1)
      .arg(to_qt(short_time(p.time)), to_qt(short_bytes(p.hbm)));
}

void SearchCanvas::choose(const Target& t) {
  if (t.is_edit)
    emit next_chosen(t.index);
  else
    emit point_chosen(t.index);
}

// Wrapped where they are wider than the corner, as the figures stand last; fewer of them before
// they lie over the plans.
std::vector<SearchCanvas::Caption> SearchCanvas::captions(const QRectF& plot,
                                                          const QFont& font) const {
  const QFontMetricsF metrics(font);
  std::vector<Caption> all;
  double top = plot.top() + 4;
  for (const NextEdit& e : next_) {
    if (static_cast<int>(all.size()) >= kNamedGhosts) break;
    const QRectF room(plot.left() + plot.width() * 0.26, top, plot.width() * 0.72, plot.height());
    const QString text = to_qt(e.caption);
    // A little wider: drawn in it, the text must not be wrapped once more.
    const QRectF box = metrics.boundingRect(room, kCaptionFlags, text).adjusted(-4, 0, 0, 0);
    if (!all.empty() && box.bottom() > plot.top() + kCaptionShare * plot.height()) break;
    all.push_back({box, text});
    top = box.bottom() + 2;
  }
  return all;
}

void SearchCanvas::paint_on(QPainter& painter, const QRectF& area) const {
  const Theme theme(palette());
  painter.save();
  painter.setRenderHint(QPainter::Antialiasing);
  if (!state_.best) {
    painter.setPen(theme.colour(ColourRole::muted));
    painter.drawText(area, Qt::AlignCenter | Qt::TextWordWrap, to_qt(state_.text));
    painter.restore();
    return;
  }
  const Axes a = axes(area);
  painter.setPen(QPen(theme.outline(), 1));
  painter.drawRect(a.plot);
  painter.setFont(small_font(font()));
  const double line = QFontMetricsF(painter.font()).height();
  painter.setPen(theme.colour(ColourRole::muted));
  for (const double part : {0.0, 0.5, 1.0}) {
    const double x = a.plot.left() + part * a.plot.width();
    const double y = a.plot.bottom() - part * a.plot.height();
    const Seconds time(a.low_time + part * (a.high_time - a.low_time));
    const Bytes hbm(static_cast<std::int64_t>(a.low_hbm + part * (a.high_hbm - a.low_hbm)));
    const double wide = 9 * line;
    painter.drawText(
        QRectF(std::min(x - wide / 2, area.right() - wide), a.plot.bottom() + 2, wide, line),
        Qt::AlignCenter, to_qt(short_time(time)));
    painter.drawText(QRectF(area.left() + 2, y - line / 2, a.plot.left() - area.left() - 8, line),
                     Qt::AlignRight | Qt::AlignVCenter, to_qt(short_bytes(hbm)));
  }
  painter.drawText(QRectF(a.plot.left(), a.plot.bottom() + line + 2, a.plot.width(), line),
                   Qt::AlignCenter,
                   tr("time →   HBM ↑   full: runs   line: front   rings: next edits"));
  painter.setPen(Qt::NoPen);
  QColor quiet = theme.colour(ColourRole::neutral);
  quiet.setAlpha(110);
  painter.setBrush(quiet);
  for (const SearchPoint& p : state_.points)
    if (!p.custom) painter.drawEllipse(a.at(p.time, p.hbm), 2.2, 2.2);
  QPolygonF front;
  for (const std::size_t i : state_.front)
    front << a.at(state_.points[i].time, state_.points[i].hbm);
  painter.setPen(QPen(theme.colour(ColourRole::limit), 1.8));
  painter.setBrush(Qt::NoBrush);
  painter.drawPolyline(front);
  const QColor run = theme.colour(ColourRole::predicted);
  for (const SearchPoint& p : state_.points) {
    if (!p.custom) continue;
    painter.setPen(QPen(theme.background(), 1));
    painter.setBrush(run);
    painter.drawEllipse(a.at(p.time, p.hbm), 4.5, 4.5);
  }
  const SearchPoint& best = state_.points[*state_.best];
  const QPointF from = a.at(best.time, best.hbm);
  painter.setPen(QPen(theme.colour(ColourRole::better), 2));
  painter.setBrush(Qt::NoBrush);
  painter.drawEllipse(from, 8, 8);
  for (const NextEdit& e : next_) {
    const QPointF to = a.at(e.time, e.hbm);
    QPen pen(theme.colour(e.colour), 1.4);
    pen.setDashPattern({3, 3});
    painter.setPen(pen);
    painter.drawLine(from, to);
    painter.drawEllipse(to, 5, 5);
  }
  // In a list in the corner that slower and larger plans leave free.
  for (const Caption& c : captions(a.plot, painter.font())) {
    painter.fillRect(c.box, theme.background());
    painter.setPen(theme.colour(ColourRole::text));
    painter.drawText(c.box, kCaptionFlags, c.text);
  }
  const std::vector<Target> all = targets();
  if (hasFocus() && focus_ >= 0 && focus_ < static_cast<int>(all.size())) {
    const Target& t = all[static_cast<std::size_t>(focus_)];
    const QPointF at = t.is_edit ? a.at(next_[t.index].time, next_[t.index].hbm)
                                 : a.at(state_.points[t.index].time, state_.points[t.index].hbm);
    painter.setPen(QPen(theme.colour(ColourRole::highlight), 2));
    painter.drawEllipse(at, 11, 11);
  }
  painter.restore();
}

void SearchCanvas::paintEvent(QPaintEvent*) {
  QPainter painter(this);
  paint_on(painter, rect());
}

void SearchCanvas::mousePressEvent(QMouseEvent* event) {
  const std::optional<Target> target = target_at(event->localPos());
  if (target && event->button() == Qt::LeftButton) choose(*target);
}

void SearchCanvas::keyPressEvent(QKeyEvent* event) {
  const std::vector<Target> all = targets();
  const int count = static_cast<int>(all.size());
  const auto step = [&](int by) {
    if (count == 0) return;
    focus_ = focus_ < 0 ? (by > 0 ? 0 : count - 1) : (focus_ + by + count) % count;
    setAccessibleDescription(text_of(all[static_cast<std::size_t>(focus_)]));
    update();
  };
  switch (event->key()) {
    case Qt::Key_Right:
    case Qt::Key_Down:
      return step(1);
    case Qt::Key_Left:
    case Qt::Key_Up:
      return step(-1);
    case Qt::Key_Return:
    case Qt::Key_Enter:
    case Qt::Key_Space:
      if (focus_ >= 0 && focus_ < count) choose(all[static_cast<std::size_t>(focus_)]);
      return;
    default:
      QWidget::keyPressEvent(event);
  }
}

bool SearchCanvas::event(QEvent* event) {
  if (event->type() != QEvent::ToolTip) return QWidget::event(event);
  const auto* help = static_cast<QHelpEvent*>(event);
  const std::optional<Target> target = target_at(help->pos());
  if (target)
    QToolTip::showText(help->globalPos(), text_of(*target), this);
  else
    QToolTip::hideText();
  return true;
}

}  // namespace fuseline::gui
