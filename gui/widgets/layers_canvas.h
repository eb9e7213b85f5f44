// Paints all layers of a model: from afar each as bands of its kernels, nearer its operators as
// boxes, and with names where these can be read. Only what is seen is painted.
#pragma once

#include <QLineF>
#include <QWidget>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "gui/model/layer_stack.h"
#include "gui/widgets/theme.h"

namespace fuseline::gui {

enum class StackDetail : std::uint8_t { bands, boxes, names };

inline constexpr double kAroundLayer = 26;  // points between a layer's frame and its graph
inline constexpr double kLayerTitle = 40;   // above it

inline QRectF rectangle_of(const Box& box) {
  return {box.centre.x - box.width / 2, box.centre.y - box.height / 2, box.width, box.height};
}

class LayersCanvas : public QWidget {
  Q_OBJECT
 public:
  explicit LayersCanvas(QWidget* parent);

  void show_stack(LayerStack stack);
  [[nodiscard]] const LayerStack& stack() const { return stack_; }
  void light(const std::set<std::string>& operators);  // of the first kind
  void restyle();

  void fit();
  void zoom(double factor, QPointF about);  // in pixels
  void pan(QPointF by);
  void go_to_layer(std::int64_t number);                       // so large that names can be read
  [[nodiscard]] std::int64_t layer() const { return layer_; }  // that keys go on from, from 1
  [[nodiscard]] StackDetail detail() const { return detail_at(scale_); }
  [[nodiscard]] double scale() const { return scale_; }
  // Where the operator of that layer is, in pixels; null: there is none.
  [[nodiscard]] QRectF operator_box(std::int64_t layer, const std::string& op) const;

  // Everything, in rows that fit a picture of that size.
  void paint_whole(QPainter& painter, const QRectF& area) const;

 signals:
  void hovered(const fuseline::gui::Thing& thing);
  void clicked(const fuseline::gui::Thing& thing);

 protected:
  void paintEvent(QPaintEvent* event) override;
  void resizeEvent(QResizeEvent* event) override;
  void wheelEvent(QWheelEvent* event) override;
  void mousePressEvent(QMouseEvent* event) override;
  void mouseMoveEvent(QMouseEvent* event) override;
  void mouseReleaseEvent(QMouseEvent* event) override;
  void mouseDoubleClickEvent(QMouseEvent* event) override;
  void keyPressEvent(QKeyEvent* event) override;
  bool event(QEvent* event) override;  // tooltips

 private:
  // What one layer of a kind is painted of, in points of its layout.
  struct Drawn {
    std::vector<std::pair<QRectF, QColor>> boxes;
    std::vector<QLineF> lines;  // edges, from afar
  };
  [[nodiscard]] static StackDetail detail_at(double scale);
  [[nodiscard]] QPointF to_stack(QPointF pixel) const { return (pixel - origin_) / scale_; }
  [[nodiscard]] const LayerPlace* layer_at(QPointF place) const;
  [[nodiscard]] const GraphNode* node_at(QPointF place) const;
  void paint(QPainter& painter, const StackPlaces& places, const QRectF& seen,  // seen: in points
             double scale) const;
  void paint_bands(QPainter& painter, const LayerPlace& at, double scale) const;
  void paint_boxes(QPainter& painter, const LayerPlace& at) const;
  void paint_names(QPainter& painter, const LayerPlace& at, const QRectF& seen) const;
  void paint_title(QPainter& painter, const LayerPlace& at, double scale) const;
  void colour();
  void moved();

  LayerStack stack_;
  StackPlaces places_;
  std::vector<Drawn> drawn_;  // by kind
  std::set<std::string> lit_;
  double scale_ = 1;
  QPointF origin_;  // pixel of the stack's upper left corner
  bool fitted_ = true;
  QPointF pressed_, last_;
  bool dragging_ = false;
  std::int64_t layer_ = 1;
};

}  // namespace fuseline::gui
