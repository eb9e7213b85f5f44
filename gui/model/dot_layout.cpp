#include "gui/model/dot_layout.h"

#include <algorithm>
#include <set>
#include <sstream>

#include "base/error.h"

namespace fuseline::gui {

namespace {

constexpr double kDotPoints = 72;

[[noreturn]] void refuse(const std::string& line) {
  throw InputError({.file = "output of dot",
                    .value = line.substr(0, 60),
                    .message = "is not what dot -Tplain writes for this graph"});
}

// Reads the words of one line of the plain format.
class Words {
 public:
  explicit Words(const std::string& line) : line_(line), in_(line) {}

  std::string word() {
    std::string text;
    if (!(in_ >> text)) refuse(line_);
    return text;
  }
  double number() {
    double value = 0;
    if (!(in_ >> value)) refuse(line_);
    return value;
  }
  // "n12" → 12, below `count`.
  std::size_t node(std::size_t count) {
    const std::string name = word();
    std::size_t index = 0;
    for (std::size_t i = 1; i < name.size() && i < 8; ++i) {
      if (name[i] < '0' || name[i] > '9') refuse(line_);
      index = index * 10 + static_cast<std::size_t>(name[i] - '0');
    }
    if (name.size() < 2 || name[0] != 'n' || index >= count) refuse(line_);
    return index;
  }

 private:
  const std::string& line_;
  std::istringstream in_;
};

std::vector<Point> straight(Point a, Point b) {
  const auto between = [&](double t) {
    return Point{a.x + t * (b.x - a.x), a.y + t * (b.y - a.y)};
  };
  return {a, between(1.0 / 3), between(2.0 / 3), b};
}

}  // namespace

GraphLayout parse_plain(const std::string& plain, const BlockGraph& graph) {
  GraphLayout out;
  std::istringstream lines(plain);
  std::string line;
  bool ended = false;
  while (std::getline(lines, line)) {
    Words words(line);
    const std::string kind = words.word();
    if (kind == "stop") {
      ended = true;
      break;
    }
    if (kind == "graph") {
      words.number();  // scale
      out.width = words.number() * kDotPoints;
      out.height = words.number() * kDotPoints;
    } else if (kind == "node") {
      Box box;
      const std::string& id = graph.nodes[words.node(graph.nodes.size())].id;
      box.centre.x = words.number() * kDotPoints;
      box.centre.y = out.height - words.number() * kDotPoints;
      box.width = words.number() * kDotPoints;
      box.height = words.number() * kDotPoints;
      out.nodes[id] = box;
    } else if (kind == "edge") {
      const std::string& from = graph.nodes[words.node(graph.nodes.size())].id;
      const std::string& to = graph.nodes[words.node(graph.nodes.size())].id;
      const double count = words.number();
      if (count < 4 || count > 1000) refuse(line);
      std::vector<Point>& points = out.edges[{from, to}];
      for (int i = 0; i < static_cast<int>(count); ++i) {
        const double x = words.number() * kDotPoints;
        points.push_back({x, out.height - words.number() * kDotPoints});
      }
      if (points.size() % 3 != 1) refuse(line);
    } else {
      refuse(line);
    }
  }
  if (!ended || out.nodes.size() != graph.nodes.size()) refuse(ended ? "stop" : "(cut off)");
  for (const GraphEdge& edge : graph.edges) {
    if (!out.edges.contains({edge.from, edge.to})) refuse(edge.from + " -> " + edge.to);
  }
  return out;
}

namespace {

constexpr double kRow = 60, kGap = 20, kLetter = 7.5, kHeight = 30;

double layered_width(const GraphNode& node) {
  const std::size_t letters = std::max(node.label.size(), node.is_tensor ? node.detail.size() : 0);
  return (static_cast<double>(letters) + 3) * kLetter;
}

// A column for each rank, as wide as its widest node.
GraphLayout landscape_layout(const BlockGraph& graph, std::map<std::string, int>& rank) {
  std::map<int, double> wide, filled;
  for (const GraphNode& node : graph.nodes)
    wide[rank[node.id]] = std::max(wide[rank[node.id]], layered_width(node));
  std::map<int, double> left;
  double x = 0;
  for (const auto& [column, width] : wide) {
    left[column] = x;
    x += width + 3 * kGap;
  }
  GraphLayout out;
  out.width = x;
  for (const GraphNode& node : graph.nodes) {
    const int column = rank[node.id];
    double& y = filled[column];
    out.nodes[node.id] = {
        {left[column] + wide[column] / 2, y + kHeight}, layered_width(node), kHeight};
    y += kRow;
    out.height = std::max(out.height, y + kHeight);
  }
  for (const GraphEdge& e : graph.edges) {
    const Box& a = out.nodes.at(e.from);
    const Box& b = out.nodes.at(e.to);
    out.edges[{e.from, e.to}] =
        straight({a.centre.x + a.width / 2, a.centre.y}, {b.centre.x - b.width / 2, b.centre.y});
  }
  return out;
}

}  // namespace

GraphLayout layered_layout(const BlockGraph& graph) {
  std::map<std::string, int> rank;
  // Longest paths; edges of an acyclic graph settle after as many passes as there are nodes.
  for (std::size_t pass = 0; pass < graph.nodes.size(); ++pass) {
    bool changed = false;
    for (const GraphEdge& e : graph.edges) {
      const int least = rank[e.from] + 1;
      if (rank[e.to] < least) {
        rank[e.to] = least;
        changed = true;
      }
    }
    if (!changed) break;
  }
  // Tensors that are only read stand right above their first reader.
  std::set<std::string> written;
  for (const GraphEdge& e : graph.edges) written.insert(e.to);
  for (const GraphNode& node : graph.nodes) {
    if (!node.is_tensor || written.contains(node.id)) continue;
    int first = -1;
    for (const GraphEdge& e : graph.edges) {
      if (e.from == node.id && (first < 0 || rank[e.to] < first)) first = rank[e.to];
    }
    if (first > 0) rank[node.id] = first - 1;
  }
  if (graph.landscape) return landscape_layout(graph, rank);
  GraphLayout out;
  std::map<int, double> filled;  // width of each row so far
  for (const GraphNode& node : graph.nodes) {
    const int row = rank[node.id];
    const double width = layered_width(node);
    double& x = filled[row];
    out.nodes[node.id] = {{x + width / 2, row * kRow + kHeight}, width, kHeight};
    x += width + kGap;
    out.width = std::max(out.width, x);
    out.height = std::max(out.height, row * kRow + 2 * kHeight);
  }
  for (const GraphEdge& e : graph.edges) {
    const Box& a = out.nodes.at(e.from);
    const Box& b = out.nodes.at(e.to);
    out.edges[{e.from, e.to}] =
        straight({a.centre.x, a.centre.y + a.height / 2}, {b.centre.x, b.centre.y - b.height / 2});
  }
  return out;
}

GraphLayout layout(const BlockGraph& graph, const std::string& program) {
  if (graph.nodes.empty()) return {};
  try {
    return parse_plain(run_dot(dot_text(graph), program), graph);
  } catch (const MissingError& missing) {
    GraphLayout out = layered_layout(graph);
    out.note = missing.what();
    return out;
  }
}

Hull hull_of(const GraphGroup& group, const BlockGraph& graph, const GraphLayout& layout) {
  Hull hull;
  const std::set<std::string> inside(group.nodes.begin(), group.nodes.end());
  for (const std::string& id : group.nodes) {
    if (const auto box = layout.nodes.find(id); box != layout.nodes.end()) {
      hull.boxes.push_back(box->second);
    }
  }
  std::set<std::pair<std::string, std::string>> seen;
  for (const GraphEdge& e : graph.edges) {
    if (!inside.contains(e.from) || !inside.contains(e.to)) continue;
    const auto line = layout.edges.find({e.from, e.to});
    if (line != layout.edges.end() && seen.insert(line->first).second) {
      hull.spines.push_back(line->second);
    }
  }
  return hull;
}

}  // namespace fuseline::gui
