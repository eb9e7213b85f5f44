// One chart: draws a scene on axes, with hovering, selecting, zooming, and painting into pictures.
//
// Mouse: hover, click; dragging a rectangle zooms into it, a double click goes one step back.
// Keyboard: arrows step through what can be hovered, Enter selects it, + zooms in, Backspace goes
// back, Escape shows all.
#pragma once

#include <qcustomplot.h>

#include <optional>

#include "gui/widgets/charts/scene.h"
#include "gui/widgets/theme.h"

class QRubberBand;

namespace fuseline::gui {

class Footer;
class Header;
class MarkLayer;
struct Hit;

class Plot : public QCustomPlot {
  Q_OBJECT
 public:
  explicit Plot(QWidget* parent);

  // Keeps the zoom while the axes stay the same.
  void set_scene(Scene scene);
  [[nodiscard]] const Scene& scene() const { return scene_; }
  void set_highlight(const Highlight& highlight);
  // Leaves the same room for names and results of rows, so that places of both lie on one line.
  void align_with(const Plot& other) { aligned_with_ = &other; }
  void set_style(const Theme& theme, const QFont& font);

  struct Zoom {
    Range x, y;
    friend bool operator==(const Zoom&, const Zoom&) = default;
  };
  [[nodiscard]] Zoom shown() const;
  void zoom_to(const Zoom& zoom);
  void zoom_back();
  void zoom_out();  // to all
  [[nodiscard]] bool is_zoomed() const { return !zooms_.isEmpty(); }

  // Its pictures, until it is painted again.
  void give_up();

  // The whole chart in the rectangle; vectors where the painter draws vectors.
  void paint_to(QPainter& painter, const QRect& area);

  // Where a place of the chart is on the widget, and what is under a place of the widget.
  [[nodiscard]] QPointF pixel(Point at) const;
  [[nodiscard]] std::optional<Hit> hit(const QPointF& at) const;

  [[nodiscard]] QSize minimumSizeHint() const override { return {160, 110}; }
  [[nodiscard]] QSize sizeHint() const override { return {600, 360}; }

 signals:
  void hovered(const fuseline::gui::Thing& thing);
  void selected(const fuseline::gui::Thing& thing);

 protected:
  void updateLayout() override;
  void paintEvent(QPaintEvent* event) override;
  void mousePressEvent(QMouseEvent* event) override;
  void mouseMoveEvent(QMouseEvent* event) override;
  void mouseReleaseEvent(QMouseEvent* event) override;
  void mouseDoubleClickEvent(QMouseEvent* event) override;
  void wheelEvent(QWheelEvent* event) override;
  void keyPressEvent(QKeyEvent* event) override;
  void leaveEvent(QEvent* event) override;
  void focusInEvent(QFocusEvent* event) override;
  void focusOutEvent(QFocusEvent* event) override;
  void hideEvent(QHideEvent* event) override;
  void showEvent(QShowEvent* event) override;
  void resizeEvent(QResizeEvent* event) override;

 private:
  void draw_again();
  void take_back();
  void set_axes();
  void style_axis(QCPAxis& axis, const AxisSpec& spec);
  void set_ranges(const Zoom& zoom);
  [[nodiscard]] Zoom all() const { return {scene_.x.range, scene_.y.range}; }
  void hover_at(const QPointF& at, const QPoint& global);
  void hover_thing(const Thing& thing);
  void step(int by);
  void zoom_into(const QRectF& pixels);
  void zoom_about(const QPointF& at, double factor);

  Scene scene_;
  std::optional<Theme> theme_;
  Header* header_;
  Footer* footer_;
  MarkLayer* marks_;
  const Plot* aligned_with_ = nullptr;
  QVector<Zoom> zooms_;  // those to go back to
  QRubberBand* band_;
  std::optional<QPoint> pressed_;
  bool dragging_ = false;
  bool gave_up_ = false;  // its pictures, which take as much memory as it is large
  Thing hovered_;
  int current_ = -1;  // of the keyboard, among the things
};

}  // namespace fuseline::gui
