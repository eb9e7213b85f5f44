// The block graph as a scene: it turns clicks and hovering into things, and keeps its nodes' places
// while groups change.
#pragma once

#include <QGraphicsScene>
#include <vector>

#include "gui/widgets/graph_items.h"

namespace fuseline::gui {

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
  // Where reading begins: the topmost operator.
  [[nodiscard]] QPointF start() const;
  [[nodiscard]] QRectF picture() const { return picture_; }

 signals:
  void hovered(const fuseline::gui::Thing& thing);
  void clicked(const fuseline::gui::Thing& thing);
  void edge_clicked(const fuseline::gui::GraphEdge& edge);

 protected:
  void mouseMoveEvent(QGraphicsSceneMouseEvent* event) override;
  void mousePressEvent(QGraphicsSceneMouseEvent* event) override;
  void mouseReleaseEvent(QGraphicsSceneMouseEvent* event) override;

 private:
  [[nodiscard]] GraphItem* item_at(QPointF position) const;
  void forget();
  void place_labels();

  std::vector<NodeItem*> nodes_;
  std::vector<EdgeItem*> edges_;
  std::vector<HullItem*> hulls_;
  std::vector<GraphItem*> all_;
  EdgeItem* chosen_ = nullptr;
  QRectF picture_;
  QPointF pressed_;
};

}  // namespace fuseline::gui
