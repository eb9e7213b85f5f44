// The block graph as a scene: it turns clicks and hovering into things, and keeps its nodes' places
// while groups change.
#pragma once

#include <QGraphicsScene>
#include <vector>

#include "gui/widgets/drop_items.h"
#include "gui/widgets/graph_items.h"

namespace fuseline::gui {

// For the map: a node's box, and what it is.
struct NodePlace {
  QRectF box;
  Colour colour;
  bool is_lit = false;
};

class GraphScene : public QGraphicsScene {
  Q_OBJECT
 public:
  explicit GraphScene(QObject* parent);

  void show_graph(const BlockGraph& graph, const GraphLayout& layout, const Theme& theme);
  void show_problem(const QString& text, const Theme& theme);
  // By edge_text(), see edge_chances.h.
  void show_chances(const std::map<std::string, EdgeChance>& chances);
  void restyle(const Theme& theme);
  // `run`: the one that is drawn.
  void show_highlight(const Highlight& highlight, RunId run);

  // Edges that can be toggled, from top to bottom: for the keyboard. Null when there is none.
  EdgeItem* step(int by);
  [[nodiscard]] EdgeItem* chosen() const { return chosen_; }
  [[nodiscard]] EdgeItem* find_edge(const OnChipEdge& edge) const;
  [[nodiscard]] std::vector<std::string> operators_in(const QPainterPath& area) const;
  // Names of the operators of the kernel under the place; empty: none is there.
  [[nodiscard]] std::vector<std::string> kernel_at(QPointF place) const;
  // Of the operator whose box is there; empty: none.
  [[nodiscard]] std::string operator_at(QPointF place) const;
  [[nodiscard]] QRectF operator_place(const std::string& op) const;  // null: it is not drawn
  // Operators from top to bottom: the one after `from`, or before it; empty: there is none.
  [[nodiscard]] std::string operator_after(const std::string& from, int by) const;
  // Frames around the kernels that an operator can be dropped on; none: takes them away.
  void show_targets(const MoveTargets& targets, std::optional<std::size_t> aim, const Theme& theme);
  [[nodiscard]] QRectF target_place(std::optional<std::size_t> target) const;
  [[nodiscard]] const std::vector<DropItem*>& drop_items() const { return drops_; }
  // Where reading begins: the topmost operator.
  [[nodiscard]] QPointF start() const;
  [[nodiscard]] QRectF picture() const { return picture_; }
  [[nodiscard]] std::vector<NodePlace> node_places() const;
  [[nodiscard]] bool is_landscape() const { return landscape_; }

 signals:
  void hovered(const fuseline::gui::Thing& thing);
  void clicked(const fuseline::gui::Thing& thing);
  void edge_clicked(const fuseline::gui::GraphEdge& edge);
  void part_clicked(const std::string& part);  // twice, on one of its operators or on its box

 protected:
  void mouseMoveEvent(QGraphicsSceneMouseEvent* event) override;
  void mousePressEvent(QGraphicsSceneMouseEvent* event) override;
  void mouseReleaseEvent(QGraphicsSceneMouseEvent* event) override;
  void mouseDoubleClickEvent(QGraphicsSceneMouseEvent* event) override;

 private:
  [[nodiscard]] GraphItem* item_at(QPointF position) const;
  [[nodiscard]] const NodeItem* node_of(const std::string& op) const;
  [[nodiscard]] const HullItem* hull_around(const std::string& op) const;
  void forget();
  void place_labels();

  std::vector<NodeItem*> nodes_;
  std::vector<EdgeItem*> edges_;
  std::vector<HullItem*> hulls_;
  std::vector<DropItem*> drops_;
  std::vector<GraphItem*> all_;
  EdgeItem* chosen_ = nullptr;
  QRectF picture_;
  bool landscape_ = false;
  QPointF pressed_;
};

}  // namespace fuseline::gui
