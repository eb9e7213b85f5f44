#include "gui/model/graph_pair.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <utility>

namespace fuseline::gui {

namespace {

std::set<std::string> operators_of(const BlockGraph& graph) {
  std::set<std::string> names;
  for (const GraphNode& node : graph.nodes)
    if (!node.is_tensor) names.insert(node.label);
  return names;
}

// Between operators, by edge_text(), and whether both ends are in one kernel.
std::map<std::string, bool> inner_edges(const BlockGraph& graph) {
  std::map<std::string, bool> edges;
  for (const GraphEdge& e : graph.edges)
    if (!e.choice.from.empty()) edges[edge_text(e.choice)] |= e.fused;
  return edges;
}

GraphDifference difference(const BlockGraph& here, const BlockGraph& there) {
  GraphDifference found;
  std::ranges::set_difference(operators_of(here), operators_of(there),
                              std::inserter(found.operators, found.operators.end()));
  const std::map<std::string, bool> other = inner_edges(there);
  for (const auto& [edge, fused] : inner_edges(here)) {
    const auto twin = other.find(edge);
    if (twin == other.end() || twin->second != fused) found.edges.insert(edge);
  }
  return found;
}

std::string joined_names(const std::set<std::string>& names) {
  return fmt::format("{}", fmt::join(names, ", "));
}

}  // namespace

GraphPair graph_pair(const RunView& left, const RunView& right) {
  GraphPair pair;
  pair.left = block_graph(left);
  pair.right = block_graph(right);
  for (const auto& [view, graph] : {std::pair(&left, &pair.left), std::pair(&right, &pair.right)}) {
    if (graph->problem.empty()) continue;
    pair.problem = view->label() + ": " + graph->problem;
    return pair;
  }
  if (!is_comparable(left, right)) {
    pair.problem = likeness_note(subject_of(left), subject_of(right));
    return pair;
  }
  pair.only_left = difference(pair.left, pair.right);
  pair.only_right = difference(pair.right, pair.left);
  const std::map<std::string, bool> a = inner_edges(pair.left), b = inner_edges(pair.right);
  for (const auto& [edge, fused] : a) {
    const auto twin = b.find(edge);
    if (twin == b.end() || twin->second == fused) continue;
    pair.lines.push_back(fmt::format("{}: one kernel in {}, apart in {}", edge,
                                     fused ? left.label() : right.label(),
                                     fused ? right.label() : left.label()));
  }
  if (!pair.only_left.operators.empty())
    pair.lines.push_back(
        fmt::format("only in {}: {}", left.label(), joined_names(pair.only_left.operators)));
  if (!pair.only_right.operators.empty())
    pair.lines.push_back(
        fmt::format("only in {}: {}", right.label(), joined_names(pair.only_right.operators)));
  if (pair.lines.empty())
    pair.lines.emplace_back("both put the same operators into the same kernels");
  return pair;
}

Table to_table(const GraphPair& pair) {
  Table table{"graphs", {"side", "operator", "edge"}, {}};
  const auto add = [&](const char* side, const GraphDifference& d, const Subject& about) {
    for (const std::string& op : d.operators)
      add_row(table, {std::string(side), op, Cell()}, about);
    for (const std::string& edge : d.edges)
      add_row(table, {std::string(side), Cell(), edge}, about);
  };
  add("left", pair.only_left, pair.left.about);
  add("right", pair.only_right, pair.right.about);
  return table;
}

}  // namespace fuseline::gui
