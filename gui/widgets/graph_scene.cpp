#include "gui/widgets/graph_scene.h"

#include <QFontMetrics>
#include <QGraphicsSceneMouseEvent>
#include <QGraphicsTextItem>
#include <algorithm>
#include <cmath>
#include <map>

#include "gui/widgets/qt_text.h"
#include "model/custom_fusion.h"

namespace fuseline::gui {

namespace {

constexpr double kFrameMargin = 26;
constexpr double kFrameHead = 36;  // room for its label
constexpr double kClickMoves = 5;  // pixels that a click may move

// And not the box that stands for a closed part.
bool is_operator(const NodeItem& item) {
  return item.thing().kind == ThingKind::op && item.node().id != item.thing().name;
}

}  // namespace

GraphScene::GraphScene(QObject* parent) : QGraphicsScene(parent) {
  // Dozens of items: looking at all of them is quicker than an index that every edit rebuilds.
  setItemIndexMethod(QGraphicsScene::NoIndex);
}

void GraphScene::forget() {
  clear();
  nodes_.clear();
  edges_.clear();
  hulls_.clear();
  drops_.clear();
  all_.clear();
  chosen_ = nullptr;
}

void GraphScene::show_graph(const BlockGraph& graph, const GraphLayout& layout,
                            const Theme& theme) {
  const OnChipEdge kept = chosen_ == nullptr ? OnChipEdge{} : chosen_->edge().choice;
  forget();
  const QRectF inner(0, 0, layout.width, layout.height);
  const QRectF area = inner.adjusted(-kFrameMargin, -kFrameHead, kFrameMargin, kFrameMargin);
  auto* frame = new FrameItem(area, tr("one layer  %1").arg(to_qt(graph.repeat)), theme);
  addItem(frame);
  all_.push_back(frame);
  for (const GraphGroup& group : graph.groups) {
    auto* item = new HullItem(group, hull_of(group, graph, layout), theme);
    addItem(item);
    hulls_.push_back(item);
    all_.push_back(item);
  }
  std::map<std::pair<std::string, std::string>, int> parallel;
  for (const GraphEdge& edge : graph.edges) {
    const auto found = layout.edges.find({edge.from, edge.to});
    if (found == layout.edges.end()) continue;
    // Two tensors between the same operators: side by side.
    std::vector<Point> points = found->second;
    const int n = parallel[found->first]++;
    for (Point& p : points) p.x += 11.0 * n;
    auto* item = new EdgeItem(edge, points, theme);
    addItem(item);
    edges_.push_back(item);
    all_.push_back(item);
  }
  for (const GraphNode& node : graph.nodes) {
    const auto found = layout.nodes.find(node.id);
    if (found == layout.nodes.end()) continue;
    auto* item = new NodeItem(node, found->second, theme);
    addItem(item);
    nodes_.push_back(item);
    all_.push_back(item);
  }
  place_labels();
  addItem(new EdgeLabelsItem(edges_, area));
  landscape_ = graph.landscape;
  picture_ = area.adjusted(-12, -12, 12, 12);
  setSceneRect(picture_);
  if (EdgeItem* again = kept.from.empty() ? nullptr : find_edge(kept)) {
    chosen_ = again;
    chosen_->set_chosen(true);
  }
}

// The thickest edges first: theirs are read most.
void GraphScene::place_labels() {
  std::vector<QRectF> taken;
  for (const NodeItem* item : nodes_) taken.push_back(item->boundingRect());
  std::vector<EdgeItem*> order = edges_;
  std::ranges::stable_sort(order, std::greater<>(),
                           [](const EdgeItem* item) { return item->edge().thickness; });
  for (EdgeItem* item : order) {
    if (item->has_label()) taken.push_back(item->place_label(taken));
  }
}

void GraphScene::show_problem(const QString& text, const Theme& theme) {
  forget();
  landscape_ = false;
  QGraphicsTextItem* item = addText(text);
  item->setDefaultTextColor(theme.colour(ColourRole::muted));
  item->setTextWidth(360);
  picture_ = item->boundingRect().adjusted(-20, -20, 20, 20);
  setSceneRect(picture_);
}

void GraphScene::restyle(const Theme& theme) {
  for (GraphItem* item : all_) item->set_theme(theme);
}

void GraphScene::show_highlight(const Highlight& highlight, RunId run) {
  const auto launches = highlight.kernels.find(run);
  for (NodeItem* item : nodes_) {
    const Thing& t = item->thing();
    item->set_lit(t.kind == ThingKind::op ? highlight.operators.contains(t.name)
                                          : highlight.tensors.contains(t.name));
  }
  for (EdgeItem* item : edges_) {
    const GraphEdge& e = item->edge();
    const bool by_edge = !e.choice.from.empty() && highlight.edges.contains(edge_text(e.choice));
    item->set_lit(by_edge || highlight.tensors.contains(e.tensor));
  }
  for (HullItem* item : hulls_) {
    item->set_lit(launches != highlight.kernels.end() && launches->second.contains(item->launch()));
  }
}

EdgeItem* GraphScene::find_edge(const OnChipEdge& edge) const {
  const auto found = std::ranges::find_if(
      edges_, [&](const EdgeItem* item) { return item->edge().choice == edge; });
  return found == edges_.end() ? nullptr : *found;
}

void GraphScene::show_chances(const std::map<std::string, EdgeChance>& chances) {
  for (EdgeItem* item : edges_) {
    const auto found = chances.find(edge_text(item->edge().choice));
    if (item->edge().can_toggle && found != chances.end()) item->set_chance(found->second);
  }
  place_labels();
}

EdgeItem* GraphScene::step(int by) {
  std::vector<EdgeItem*> ways;
  std::ranges::copy_if(edges_, std::back_inserter(ways),
                       [](const EdgeItem* item) { return item->edge().can_toggle; });
  if (ways.empty()) return nullptr;
  std::ranges::stable_sort(ways, [this](const EdgeItem* a, const EdgeItem* b) {
    return landscape_ ? a->middle().x() < b->middle().x() : a->middle().y() < b->middle().y();
  });
  const auto now = std::ranges::find(ways, chosen_);
  const auto n = static_cast<std::ptrdiff_t>(ways.size());
  const std::ptrdiff_t index =
      now == ways.end() ? (by > 0 ? 0 : n - 1) : (now - ways.begin() + by + n) % n;
  if (chosen_ != nullptr) chosen_->set_chosen(false);
  chosen_ = ways[static_cast<std::size_t>(index)];
  chosen_->set_chosen(true);
  return chosen_;
}

QPointF GraphScene::start() const {
  const NodeItem* first = nullptr;
  for (const NodeItem* item : nodes_) {
    if (item->node().is_tensor) continue;
    const QRectF box = item->boundingRect();
    const bool earlier = first == nullptr || (landscape_ ? box.left() < first->boundingRect().left()
                                                         : box.top() < first->boundingRect().top());
    if (earlier) first = item;
  }
  return first == nullptr ? picture_.center() : first->boundingRect().center();
}

std::vector<std::string> GraphScene::operators_in(const QPainterPath& area) const {
  std::vector<std::string> names;
  for (const NodeItem* item : nodes_) {
    if (!is_operator(*item)) continue;
    if (area.contains(item->boundingRect().center())) names.push_back(item->thing().name);
  }
  return names;
}

const NodeItem* GraphScene::node_of(const std::string& op) const {
  const auto found = std::ranges::find_if(nodes_, [&](const NodeItem* item) {
    return item->thing().kind == ThingKind::op && item->thing().name == op;
  });
  return found == nodes_.end() ? nullptr : *found;
}

const HullItem* GraphScene::hull_around(const std::string& op) const {
  const NodeItem* node = node_of(op);
  const auto found = std::ranges::find_if(hulls_, [&](const HullItem* item) {
    return node != nullptr && item->holds(node->node().id);
  });
  return found == hulls_.end() ? nullptr : *found;
}

std::vector<NodePlace> GraphScene::node_places() const {
  std::vector<NodePlace> places;
  for (const NodeItem* item : nodes_)
    places.push_back({item->boundingRect(), item->node().colour, item->is_lit()});
  return places;
}

QRectF GraphScene::operator_place(const std::string& op) const {
  const NodeItem* node = node_of(op);
  return node == nullptr ? QRectF() : node->boundingRect();
}

std::string GraphScene::operator_at(QPointF place) const {
  for (const NodeItem* item : nodes_)
    if (is_operator(*item) && item->shape().contains(place)) return item->thing().name;
  return {};
}

std::vector<std::string> GraphScene::kernel_at(QPointF place) const {
  std::string op = operator_at(place);
  if (op.empty()) {
    for (const NodeItem* item : nodes_) {
      if (!is_operator(*item)) continue;
      const HullItem* hull = hull_around(item->thing().name);
      if (hull != nullptr && hull->shape().contains(place)) op = item->thing().name;
    }
  }
  if (op.empty()) return {};
  const HullItem* hull = hull_around(op);
  if (hull == nullptr) return {op};
  std::vector<std::string> names;
  for (const NodeItem* item : nodes_)
    if (is_operator(*item) && hull->holds(item->node().id)) names.push_back(item->thing().name);
  return names;
}

std::string GraphScene::operator_after(const std::string& from, int by) const {
  std::vector<const NodeItem*> order;
  for (const NodeItem* item : nodes_)
    if (is_operator(*item)) order.push_back(item);
  if (order.empty()) return {};
  std::ranges::stable_sort(order, [this](const NodeItem* a, const NodeItem* b) {
    const QRectF first = a->boundingRect(), second = b->boundingRect();
    return landscape_ ? first.left() < second.left() : first.top() < second.top();
  });
  const auto n = static_cast<std::ptrdiff_t>(order.size());
  const auto now = std::ranges::find(order, node_of(from));
  const std::ptrdiff_t next =
      now == order.end() ? (by > 0 ? 0 : n - 1) : (now - order.begin() + by + n) % n;
  return order[static_cast<std::size_t>(next)]->thing().name;
}

void GraphScene::show_targets(const MoveTargets& targets, std::optional<std::size_t> aim,
                              const Theme& theme) {
  constexpr double kAround = 9;
  for (DropItem* item : drops_) {
    removeItem(item);
    delete item;
  }
  drops_.clear();
  for (std::size_t i = 0; i < targets.targets.size(); ++i) {
    const MoveTarget& target = targets.targets[i];
    if (target.operators.empty()) continue;
    const NodeItem* node = node_of(target.operators.front());
    if (node == nullptr) continue;
    QPainterPath place;
    if (const HullItem* hull = hull_around(target.operators.front())) {
      place = hull->shape();
    } else {
      place.addRoundedRect(node->boundingRect().adjusted(-kAround, -kAround, kAround, kAround), 10,
                           10);
    }
    auto* item = new DropItem(i, place, theme);
    item->show(target, aim == i);
    addItem(item);
    drops_.push_back(item);
  }
}

QRectF GraphScene::target_place(std::optional<std::size_t> target) const {
  const auto found =
      std::ranges::find_if(drops_, [&](const DropItem* item) { return target == item->target(); });
  return found == drops_.end() ? QRectF() : (*found)->boundingRect();
}

GraphItem* GraphScene::item_at(QPointF position) const {
  for (QGraphicsItem* item : items(position)) {
    auto* found = dynamic_cast<GraphItem*>(item);
    if (found != nullptr && !found->thing().is_nothing()) return found;
  }
  return nullptr;
}

void GraphScene::mouseMoveEvent(QGraphicsSceneMouseEvent* event) {
  QGraphicsScene::mouseMoveEvent(event);
  if (event->buttons() != Qt::NoButton) return;
  const GraphItem* item = item_at(event->scenePos());
  const auto* node = dynamic_cast<const NodeItem*>(item);
  const bool is_part =
      node != nullptr && item->thing().kind == ThingKind::op && !is_operator(*node);
  emit hovered(item == nullptr || is_part ? Thing{} : item->thing());
}

void GraphScene::mousePressEvent(QGraphicsSceneMouseEvent* event) {
  pressed_ = event->screenPos();
  event->accept();
}

void GraphScene::mouseDoubleClickEvent(QGraphicsSceneMouseEvent* event) {
  const auto* node = dynamic_cast<const NodeItem*>(item_at(event->scenePos()));
  if (node == nullptr || node->node().part.empty()) return;
  const std::string part = node->node().part;  // the scene is built anew meanwhile
  emit part_clicked(part);
}

void GraphScene::mouseReleaseEvent(QGraphicsSceneMouseEvent* event) {
  const QPointF moved = event->screenPos() - pressed_;
  if (event->button() != Qt::LeftButton || std::hypot(moved.x(), moved.y()) > kClickMoves) return;
  const GraphItem* item = item_at(event->scenePos());
  const auto* edge = dynamic_cast<const EdgeItem*>(item);
  if (edge != nullptr && edge->edge().can_toggle) {
    const GraphEdge copy = edge->edge();  // the scene may be built anew meanwhile
    emit edge_clicked(copy);
    return;
  }
  const auto* node = dynamic_cast<const NodeItem*>(item);
  const bool is_part =
      node != nullptr && item->thing().kind == ThingKind::op && !is_operator(*node);
  emit clicked(item == nullptr || is_part ? Thing{} : item->thing());
}

}  // namespace fuseline::gui
