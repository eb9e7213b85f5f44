// What the block graph is drawn of: operators, tensors, edges, hulls of kernels, the frame of a
// layer. One unit is one point of dot's layout. Items draw; the scene says what a click means.
#pragma once

#include <QGraphicsItem>
#include <QPainterPath>
#include <vector>

#include "gui/model/block_graph.h"
#include "gui/model/dot_layout.h"
#include "gui/model/edge_chances.h"
#include "gui/widgets/theme.h"

namespace fuseline::gui {

// Carries the thing that it stands for, and whether it is highlighted.
class GraphItem : public QGraphicsItem {
 public:
  GraphItem(Thing thing, const Theme& theme) : thing_(std::move(thing)), theme_(theme) {}
  [[nodiscard]] const Thing& thing() const { return thing_; }
  void set_theme(const Theme& theme);
  void set_lit(bool lit);
  [[nodiscard]] bool is_lit() const { return lit_; }

 protected:
  [[nodiscard]] const Theme& theme() const { return theme_; }

 private:
  Thing thing_;
  Theme theme_;
  bool lit_ = false;
};

class NodeItem : public GraphItem {
 public:
  NodeItem(const GraphNode& node, const Box& box, const Theme& theme);
  [[nodiscard]] const GraphNode& node() const { return node_; }
  [[nodiscard]] QRectF boundingRect() const override;
  [[nodiscard]] QPainterPath shape() const override;
  void paint(QPainter* painter, const QStyleOptionGraphicsItem*, QWidget*) override;

 private:
  GraphNode node_;
  QRectF box_;
};

class EdgeItem : public GraphItem {
 public:
  EdgeItem(const GraphEdge& edge, const std::vector<Point>& bezier, const Theme& theme);
  [[nodiscard]] const GraphEdge& edge() const { return edge_; }
  [[nodiscard]] QPointF middle() const { return path_.pointAtPercent(0.5); }
  [[nodiscard]] bool has_label() const;  // else only while it is highlighted
  // Puts the label where it meets none of the boxes; empty where there is no such place: it is
  // seen only while the edge is highlighted then.
  QRectF place_label(const std::vector<QRectF>& taken);
  // Whether a click can change it, once that is judged: edges that can be fused bear a mark.
  void set_chance(const EdgeChance& chance);
  [[nodiscard]] bool can_be_fused() const { return chance_ && chance_->legal && !chance_->splits; }
  // What a click would do, for the tooltip; may be empty.
  void set_preview(const QString& text);
  // Chosen with the keyboard: Enter would toggle it.
  void set_chosen(bool chosen);
  [[nodiscard]] QRectF boundingRect() const override;
  [[nodiscard]] QPainterPath shape() const override;
  void paint(QPainter* painter, const QStyleOptionGraphicsItem*, QWidget*) override;
  // What it says, or its mark; EdgeLabelsItem calls it for edges that are not chosen.
  void paint_label(QPainter& painter) const;
  [[nodiscard]] bool is_chosen() const { return chosen_; }

 private:
  [[nodiscard]] double width() const;
  [[nodiscard]] QColor colour() const;
  [[nodiscard]] QRectF label_box() const;
  GraphEdge edge_;
  QPainterPath path_;
  QPolygonF head_;
  double label_width_ = 0;
  double label_at_ = 0.5;   // part of the path
  double label_aside_ = 0;  // in widths of the label
  bool no_room_ = false;
  std::optional<EdgeChance> chance_;
  QString preview_;
  bool chosen_ = false;
};

// What all edges say: over the lines of every edge, so that none strikes another one's label out.
// The mouse meets the edges themselves.
class EdgeLabelsItem : public QGraphicsItem {
 public:
  EdgeLabelsItem(std::vector<EdgeItem*> edges, QRectF area);
  [[nodiscard]] QRectF boundingRect() const override { return area_; }
  [[nodiscard]] QPainterPath shape() const override { return {}; }
  void paint(QPainter* painter, const QStyleOptionGraphicsItem*, QWidget*) override;

 private:
  std::vector<EdgeItem*> edges_;
  QRectF area_;
};

// A plus on a disc.
void draw_fuse_mark(QPainter& painter, QPointF centre, const Theme& theme);

// Behind the nodes of one kernel.
class HullItem : public GraphItem {
 public:
  HullItem(const GraphGroup& group, const Hull& hull, const Theme& theme);
  [[nodiscard]] std::size_t launch() const { return group_.thing.kernel; }
  [[nodiscard]] bool holds(const std::string& node) const;  // by GraphNode::id
  [[nodiscard]] QRectF boundingRect() const override;
  [[nodiscard]] QPainterPath shape() const override { return path_; }
  void paint(QPainter* painter, const QStyleOptionGraphicsItem*, QWidget*) override;

 private:
  GraphGroup group_;
  QPainterPath path_;
};

// Around the block: it stands for as many equal layers as its label says.
class FrameItem : public GraphItem {
 public:
  FrameItem(QRectF area, QString label, const Theme& theme);
  [[nodiscard]] QRectF boundingRect() const override;
  [[nodiscard]] QPainterPath shape() const override { return {}; }  // no target of the mouse
  void paint(QPainter* painter, const QStyleOptionGraphicsItem*, QWidget*) override;

 private:
  QRectF area_;
  QString label_;
};

}  // namespace fuseline::gui
