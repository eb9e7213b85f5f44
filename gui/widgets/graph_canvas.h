// Shows the scene of the block graph: zoom with the wheel, drag to move, Shift+drag for a lasso.
#pragma once

#include <QGraphicsView>
#include <QPolygonF>

#include <cstdint>

#include "gui/widgets/graph_scene.h"

namespace fuseline::gui {

class GraphCanvas : public QGraphicsView {
  Q_OBJECT
 public:
  explicit GraphCanvas(QWidget* parent);
  [[nodiscard]] GraphScene& graph() const { return *scene_; }

  // All of it where that can be read, else its beginning as large as that takes.
  void show_start();
  void go_to(QPointF centre);  // in the scene
  void fit();                  // all of it; again whenever the widget's size changes
  void zoom(double factor);    // about the centre, or the mouse
  void set_lasso(bool on) { lasso_mode_ = on; }
  void show_edge(const EdgeItem& edge) { ensureVisible(&edge, 30, 30); }
  // Whether a drag that begins on an operator carries it; else it moves the graph.
  void set_can_carry(bool can) { can_carry_ = can; }
  // While an operator is carried, keys and the mouse are about it.
  void set_carrying(bool carrying);

 signals:
  void toggle_requested(const fuseline::gui::GraphEdge& edge);  // with the keyboard
  void edge_chosen(const fuseline::gui::GraphEdge& edge);
  void lassoed(const std::vector<std::string>& operators);
  void lifted(const std::string& op);  // by the mouse, which follows with carried() and put_down()
  void carried(const QPoint& at);
  void put_down();
  void put_back();  // Esc
  void zoomed();
  void lift_requested();  // with the keyboard; then target_stepped() and put_down()
  void target_stepped(int by);
  void operator_stepped(int by);  // Ctrl and an arrow: another operator is to be chosen

 protected:
  void wheelEvent(QWheelEvent* event) override;
  void mousePressEvent(QMouseEvent* event) override;
  void mouseMoveEvent(QMouseEvent* event) override;
  void mouseReleaseEvent(QMouseEvent* event) override;
  void keyPressEvent(QKeyEvent* event) override;
  void resizeEvent(QResizeEvent* event) override;
  void drawForeground(QPainter* painter, const QRectF& area) override;

 private:
  GraphScene* scene_;
  enum class Placed : std::uint8_t { at_start, whole, by_hand };
  [[nodiscard]] double fitting_scale() const;
  bool key_while_carrying(int key);
  Placed placed_ = Placed::at_start;
  bool lasso_mode_ = false;
  bool lassoing_ = false;
  bool dragging_ = false;
  bool can_carry_ = false;
  bool carrying_ = false;
  bool carried_by_mouse_ = false;
  std::string under_press_;  // the operator on which the mouse was pressed
  QPoint pressed_;
  QPoint last_;
  QPolygonF lasso_;  // in the scene's units
};

// What lines and colours mean, in one line; in few words where there is little room.
void draw_graph_legend(QPainter& painter, const QRectF& area, const Theme& theme,
                       const QFont& font);

class GraphLegend : public QWidget {
  Q_OBJECT
 public:
  explicit GraphLegend(QWidget* parent);

 protected:
  void paintEvent(QPaintEvent* event) override;
  void resizeEvent(QResizeEvent* event) override;  // as high as its lines
};

}  // namespace fuseline::gui
