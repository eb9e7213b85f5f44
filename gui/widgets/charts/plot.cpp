#include "gui/widgets/charts/plot.h"

#include <QPicture>
#include <QRubberBand>
#include <algorithm>
#include <cmath>

#include "gui/widgets/charts/header.h"
#include "gui/widgets/charts/mark_layer.h"
#include "gui/widgets/charts/ticker.h"

namespace fuseline::gui {

namespace {

constexpr int kPlotMargin = 8;

}  // namespace

Plot::Plot(QWidget* parent)
    : QCustomPlot(parent),
      header_(new Header(this)),
      footer_(new Footer(this)),
      marks_(new MarkLayer(this)),
      band_(new QRubberBand(QRubberBand::Rectangle, this)) {
  setFocusPolicy(Qt::StrongFocus);
  setMouseTracking(true);
  // At 150 % its buffer may end within the last pixels: what is behind it is painted first.
  setAttribute(Qt::WA_OpaquePaintEvent, false);
  setNoAntialiasingOnDrag(false);
  plotLayout()->insertRow(0);
  plotLayout()->addElement(0, 0, header_);
  plotLayout()->addElement(2, 0, footer_);
  plotLayout()->setRowSpacing(4);
  plotLayout()->setMargins({kPlotMargin, kPlotMargin, kPlotMargin, kPlotMargin});
  axisRect()->setMinimumMargins({0, 0, 0, 0});
  marks_->set_scene(&scene_);
  set_style(Theme(palette()), font());
}

void Plot::set_scene(Scene scene) {
  const bool same_axes = scene.x.range == scene_.x.range && scene.y.range == scene_.y.range &&
                         scene.x.log == scene_.x.log;
  scene_ = std::move(scene);
  if (!same_axes) zooms_.clear();
  current_ = -1;
  setAccessibleName(QString::fromStdString(scene_.title));
  setAccessibleDescription(QString::fromStdString(spoken(scene_)));
  set_axes();
  if (zooms_.isEmpty()) set_ranges(all());
  draw_again();
}

// A hidden chart has given its pictures up, and is drawn when it comes back.
void Plot::draw_again() {
  if (!gave_up_) replot(rpQueuedReplot);
}

void Plot::hideEvent(QHideEvent* event) {
  QCustomPlot::hideEvent(event);
  give_up();
}

void Plot::give_up() {
  mPaintBuffers.clear();
  gave_up_ = true;
}

void Plot::showEvent(QShowEvent* event) {
  QCustomPlot::showEvent(event);
  take_back();
}

// QCustomPlot would make pictures of the new size at once.
void Plot::resizeEvent(QResizeEvent* event) {
  if (gave_up_)
    setViewport(rect());
  else
    QCustomPlot::resizeEvent(event);
}

void Plot::take_back() {
  if (!gave_up_) return;
  gave_up_ = false;
  replot(rpQueuedRefresh);
}

void Plot::set_highlight(const Highlight& highlight) {
  if (highlight == marks_->highlight()) return;
  marks_->set_highlight(highlight);
  draw_again();
}

void Plot::set_style(const Theme& theme, const QFont& font) {
  theme_ = theme;
  marks_->set_style(theme, font);
  setBackground(QBrush(theme.background()));
  set_axes();
  draw_again();
}

void Plot::style_axis(QCPAxis& axis, const AxisSpec& spec) {
  const QFont small = in_pixels(small_font(font()));
  axis.setTicker(QSharedPointer<ChartTicker>::create(spec));
  axis.setScaleType(spec.log ? QCPAxis::stLogarithmic : QCPAxis::stLinear);
  axis.setLabel(QString::fromStdString(spec.label));
  axis.setLabelFont(small);
  axis.setTickLabelFont(small);
  const QColor text = theme_->colour(ColourRole::text), muted = theme_->colour(ColourRole::muted);
  const QPen grid(theme_->colour(ColourRole::grid), 1);
  axis.setLabelColor(text);
  axis.setTickLabelColor(muted);
  axis.setBasePen(QPen(theme_->outline(), 1));
  axis.setTickPen(QPen(theme_->outline(), 1));
  axis.setSubTickPen(QPen(theme_->outline(), 1));
  axis.setSubTicks(spec.log);
  axis.grid()->setPen(grid);
  axis.grid()->setZeroLinePen(Qt::NoPen);
  axis.grid()->setSubGridVisible(false);
}

void Plot::set_axes() {
  const bool drawn = scene_.problem.empty();
  for (QCPAxis* axis : {xAxis, yAxis}) {
    axis->setVisible(drawn);
    axis->grid()->setVisible(drawn);
  }
  style_axis(*xAxis, scene_.x);
  style_axis(*yAxis, scene_.y);
  const bool rows = !scene_.rows.empty();
  yAxis->setRangeReversed(rows);
  yAxis->setTicks(!rows);
  yAxis->setTickLabels(!rows);
  if (rows) yAxis->grid()->setVisible(false);
}

void Plot::set_ranges(const Zoom& zoom) {
  xAxis->setRange(zoom.x.low, zoom.x.high);
  yAxis->setRange(zoom.y.low, zoom.y.high);
}

// Before each drawing, on the widget and into pictures: strips and margins by the width that there
// is.
void Plot::updateLayout() {
  const int width = viewport().width() - 2 * kPlotMargin;
  const double text_line = text_height(in_pixels(small_font(font())));
  // Little pictures have room for the chart, and not for what it also says elsewhere.
  const bool little = viewport().height() < 18 * text_line;
  const bool least = viewport().height() < 11 * text_line;
  header_->arrange(scene_, *theme_, font(), width, !least);
  footer_->arrange(little ? Scene{} : scene_, *theme_, font(), width);
  xAxis->setLabel(little && !scene_.rows.empty() ? QString()
                                                 : QString::fromStdString(scene_.x.label));
  QMargins margins = marks_->row_margins(width);
  if (aligned_with_ != nullptr) {
    const QMargins theirs = aligned_with_->marks_->row_margins(width);
    margins.setLeft(std::max(margins.left(), theirs.left()));
    margins.setRight(std::max(margins.right(), theirs.right()));
  }
  // Half of the last value's text lies right of the axis. QCustomPlot leaves out what it would cut.
  if (!scene_.x.ticks.empty()) {
    const double half = text_width(in_pixels(small_font(font())),
                                   QString::fromStdString(scene_.x.ticks.back().text)) /
                        2;
    margins.setRight(std::max(margins.right(), static_cast<int>(half) + 2 - kPlotMargin));
  }
  axisRect()->setMinimumMargins(margins);
  const int line = static_cast<int>(text_line);
  const auto room = [](QCPAxis& axis, int pixels, int per_tick) {
    qSharedPointerCast<ChartTicker>(axis.ticker())->set_room(pixels, per_tick);
  };
  // Names and results of rows leave the axis a part of the width. Three lines are room for a value.
  const int axis = 5 * std::max(0, width - margins.left() - margins.right()) / 3;
  room(*xAxis, scene_.x.ticks.empty() ? std::min(width, axis) : width,
       (scene_.x.ticks.empty() ? 5 : 3) * line);
  room(*yAxis, viewport().height(), 5 * line);
  QCustomPlot::updateLayout();
}

Plot::Zoom Plot::shown() const {
  return {{xAxis->range().lower, xAxis->range().upper},
          {yAxis->range().lower, yAxis->range().upper}};
}

void Plot::zoom_to(const Zoom& zoom) {
  zooms_.append(shown());
  set_ranges(zoom);
  draw_again();
}

void Plot::zoom_back() {
  if (zooms_.isEmpty()) return;
  set_ranges(zooms_.takeLast());
  draw_again();
}

void Plot::zoom_out() {
  zooms_.clear();
  set_ranges(all());
  draw_again();
}

void Plot::zoom_into(const QRectF& pixels) {
  const QRectF area = pixels.intersected(axisRect()->rect());
  if (area.width() < 4 || area.height() < 4) return;
  Zoom zoom = shown();
  if (scene_.x.zooms) {
    zoom.x = {xAxis->pixelToCoord(area.left()), xAxis->pixelToCoord(area.right())};
  }
  if (scene_.y.zooms) {
    zoom.y = {yAxis->pixelToCoord(area.bottom()), yAxis->pixelToCoord(area.top())};
  }
  zoom_to(zoom);
}

// Never further out than all.
void Plot::zoom_about(const QPointF& at, double factor) {
  const QRectF axes = axisRect()->rect();
  const QPointF c(std::clamp(at.x(), axes.left(), axes.right()),
                  std::clamp(at.y(), axes.top(), axes.bottom()));
  if (factor > 1) {
    zoom_back();
    return;
  }
  zoom_into(
      QRectF(QPointF(c.x() - (c.x() - axes.left()) * factor, c.y() - (c.y() - axes.top()) * factor),
             axes.size() * factor));
}

void Plot::paint_to(QPainter& painter, const QRect& area) {
  // QCustomPlot draws with a painter of its own; a QPicture hands its commands on as they are.
  QPicture picture;
  QCPPainter recorder(&picture);
  recorder.setMode(QCPPainter::pmVectorized);
  recorder.setMode(QCPPainter::pmNoCaching);
  recorder.setRenderHint(QPainter::Antialiasing);
  toPainter(&recorder, area.width(), area.height());
  recorder.end();
  painter.save();
  painter.setRenderHints(QPainter::Antialiasing | QPainter::TextAntialiasing);
  painter.fillRect(area, theme_->background());
  // A QPicture grows with the resolution of what it is drawn on; sizes here are the painter's.
  painter.translate(area.topLeft());
  painter.scale(picture.logicalDpiX() / static_cast<double>(painter.device()->logicalDpiX()),
                picture.logicalDpiY() / static_cast<double>(painter.device()->logicalDpiY()));
  painter.drawPicture(0, 0, picture);
  painter.restore();
}

QPointF Plot::pixel(Point at) const { return marks_->pixel(at); }
std::optional<Hit> Plot::hit(const QPointF& at) const { return marks_->hit(at); }

}  // namespace fuseline::gui
