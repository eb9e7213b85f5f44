// The whole graph in a corner of its canvas, with a frame around what the canvas shows: where that
// is not all of it, and where the canvas has room beside it. A press or a drag moves there; so do
// arrow keys.
#pragma once

#include <QWidget>

#include "gui/widgets/graph_canvas.h"

namespace fuseline::gui {

class Minimap : public QWidget {
  Q_OBJECT
 public:
  explicit Minimap(GraphCanvas& canvas);
  // What the canvas shows, in the map.
  [[nodiscard]] QRectF frame() const;
  void follow();  // the canvas shows another part, or another graph

 protected:
  void paintEvent(QPaintEvent* event) override;
  void mousePressEvent(QMouseEvent* event) override;
  void mouseMoveEvent(QMouseEvent* event) override;
  void mouseReleaseEvent(QMouseEvent* event) override;
  void keyPressEvent(QKeyEvent* event) override;
  void wheelEvent(QWheelEvent* event) override;
  bool eventFilter(QObject* watched, QEvent* event) override;

 private:
  [[nodiscard]] double scale() const;  // pixels of the map for a unit of the scene
  [[nodiscard]] bool is_all_seen() const;
  void go(QPoint at);
  GraphCanvas& canvas_;
};

}  // namespace fuseline::gui
