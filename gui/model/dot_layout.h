// Where dot puts the nodes and edges of the block graph.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "gui/model/block_graph.h"
#include "gui/model/geometry.h"

namespace fuseline::gui {

// In points (1/72 inch), the origin at the top left.
struct GraphLayout {
  double width = 0;
  double height = 0;
  std::map<std::string, Box> nodes;  // by GraphNode::id
  // By GraphEdge::from and to: a start point, then three points for each cubic Bézier piece.
  std::map<std::pair<std::string, std::string>, std::vector<Point>> edges;
  std::string note;  // shown beside the graph: dot is missing, and what to install
};

// Reads what `dot -Tplain` wrote for dot_text(graph). InputError: not that format, or of another
// graph.
GraphLayout parse_plain(const std::string& plain, const BlockGraph& graph);

// Without dot: one row for each length of the longest path from an input, straight edges.
GraphLayout layered_layout(const BlockGraph& graph);

// dot's output for the text. MissingError when the program is not here: says what to install.
// InputError when it fails. Blocks for as long as dot takes (20 to 200 ms for a block).
std::string run_dot(const std::string& dot, const std::string& program = "dot");

// run_dot and parse_plain; layered_layout with a note where dot is missing.
GraphLayout layout(const BlockGraph& graph, const std::string& program = "dot");

// A hull around a group: boxes around its nodes, joined by lines along its inner edges; the union
// of both, drawn with a wide round pen, is the hull, and covers no other node's centre unless dot
// led an edge over it.
struct Hull {
  std::vector<Box> boxes;
  std::vector<std::vector<Point>> spines;  // Bézier points as in GraphLayout::edges
};
Hull hull_of(const GraphGroup& group, const BlockGraph& graph, const GraphLayout& layout);

}  // namespace fuseline::gui
