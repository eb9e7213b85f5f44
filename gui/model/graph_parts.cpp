#include "gui/model/graph_parts.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "gui/model/text.h"
#include "model/operators/operator_table.h"

namespace fuseline::gui {

namespace {

const char* const kBackwardSite = "_bwd";

struct Part {
  std::vector<std::string> sites, kinds, names;  // of its operators
  [[nodiscard]] bool speaks_of(const std::vector<std::string>& words) const {
    const auto any = [&](const std::vector<std::string>& texts) {
      return std::ranges::any_of(texts, [&](const std::string& text) {
        return std::ranges::any_of(
            words, [&](const std::string& w) { return text.find(w) != std::string::npos; });
      });
    };
    return any(sites) || any(kinds) || any(names);
  }
};

std::string plain_site(const Op& op) {
  std::string site = op.site.empty() ? op.name : op.site;
  const std::string ending = kBackwardSite;
  if (site.ends_with(ending)) site.resize(site.size() - ending.size());
  return site;
}

bool ends_a_part(const Op& op) {
  return std::string(name_of(op.kind)) == "residual_add" || op.site.starts_with("residual");
}

std::string name_of_part(const Part& part) {
  if (part.speaks_of({"attention", "softmax"})) return "attention";
  if (part.speaks_of({"router", "expert"})) return "experts";
  if (part.speaks_of({"scan", "ssm"})) return "scan";
  if (part.speaks_of({"gate", "swiglu", "gelu", "mlp", "ffn", "fc1", "up", "down"})) return "MLP";
  return {};
}

}  // namespace

std::map<std::string, std::string> parts_of(const Graph& graph) {
  std::vector<Part> parts;
  std::map<std::string, std::size_t> part_of_site;
  bool ended = true;
  for (const Op& op : graph.ops()) {
    if (op.pass == Pass::backward) continue;
    const std::string site = plain_site(op);
    const auto known = part_of_site.find(site);
    // A rewrite may put an operator of a step behind the sum that ends its part.
    if (known == part_of_site.end()) {
      if (ended) parts.emplace_back();
      ended = false;
      part_of_site.emplace(site, parts.size() - 1);
    }
    Part& part = parts[part_of_site.at(site)];
    part.sites.push_back(site);
    part.kinds.emplace_back(name_of(op.kind));
    part.names.push_back(op.name);
    if (ends_a_part(op) && part_of_site.at(site) + 1 == parts.size()) ended = true;
  }
  std::vector<std::string> names;
  std::map<std::string, int> count;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    std::string name = name_of_part(parts[i]);
    if (name.empty()) name = fmt::format("part {}", i + 1);
    if (const int n = ++count[name]; n > 1) name += fmt::format(" {}", n);
    names.push_back(std::move(name));
  }
  std::map<std::string, std::string> found;
  for (const Op& op : graph.ops()) {
    const auto part = part_of_site.find(plain_site(op));
    std::string name = part == part_of_site.end() ? "rest" : names[part->second];
    if (op.pass == Pass::backward) name += ", backward";
    found[op.name] = std::move(name);
  }
  return found;
}

std::vector<std::string> part_names(const BlockGraph& graph) {
  std::vector<std::string> names;
  for (const GraphNode& node : graph.nodes)
    if (!node.part.empty() && std::ranges::find(names, node.part) == names.end())
      names.push_back(node.part);
  return names;
}

std::string part_id(const std::string& part) { return "part:" + part; }

BlockGraph with_closed_parts(const BlockGraph& graph, const std::set<std::string>& closed) {
  if (closed.empty() || !graph.problem.empty()) return graph;
  // Where each node is drawn.
  std::map<std::string, std::string> drawn;
  std::map<std::string, std::set<std::string>> readers;  // parts around a tensor
  for (const GraphNode& node : graph.nodes)
    drawn[node.id] = closed.contains(node.part) ? part_id(node.part) : node.id;
  std::map<std::string, std::string> part_of;
  for (const GraphNode& node : graph.nodes) part_of[node.id] = node.part;
  for (const GraphEdge& edge : graph.edges) {
    readers[edge.from].insert(part_of[edge.to]);
    readers[edge.to].insert(part_of[edge.from]);
  }
  BlockGraph out = graph;
  out.nodes.clear();
  out.edges.clear();
  out.groups.clear();
  std::map<std::string, int> operators;
  for (const GraphNode& node : graph.nodes)
    if (!node.is_tensor) ++operators[node.part];
  std::set<std::string> added;
  for (const GraphNode& node : graph.nodes) {
    const bool inner = node.is_tensor && !node.is_boundary && readers[node.id].size() == 1 &&
                       closed.contains(*readers[node.id].begin());
    if (inner) drawn[node.id] = part_id(*readers[node.id].begin());
    if (inner) continue;
    if (drawn[node.id] == node.id) {
      out.nodes.push_back(node);
    } else if (added.insert(node.part).second) {
      out.nodes.push_back(
          {.id = part_id(node.part),
           .is_tensor = false,
           .label = fmt::format("{}: {} operators", node.part, operators[node.part]),
           .detail = {},
           .tooltip = fmt::format("{}: {} operators; double click opens it", node.part,
                                  operators[node.part]),
           .colour = {ColourRole::neutral, 0},
           .thing = op_thing(part_id(node.part)),
           .part = node.part});
    }
  }
  std::map<std::tuple<std::string, std::string, std::string>, std::size_t> placed;
  for (const GraphEdge& edge : graph.edges) {
    GraphEdge e = edge;
    e.from = drawn[edge.from];
    e.to = drawn[edge.to];
    if (e.from == e.to) continue;
    const bool at_a_part = e.from != edge.from || e.to != edge.to;
    if (!at_a_part) {
      out.edges.push_back(std::move(e));
      continue;
    }
    // One tensor between two boxes is one line, whoever of a part reads it.
    const auto [place, fresh] = placed.try_emplace({e.from, e.to, e.tensor}, out.edges.size());
    if (fresh) {
      e.choice = {};
      e.can_toggle = false;
      e.thing = tensor_thing(e.tensor);
      e.reason.clear();
      out.edges.push_back(std::move(e));
      continue;
    }
    GraphEdge& there = out.edges[place->second];
    there.hbm_read += e.hbm_read;
    there.hbm_stored = std::max(there.hbm_stored, e.hbm_stored);
    there.on_chip = there.on_chip && e.on_chip;
    there.thickness = std::max(there.thickness, e.thickness);
    there.label = there.on_chip ? "on chip" : short_bytes(there.hbm_read + there.hbm_stored);
    there.tooltip =
        fmt::format("{}\n{}", there.tensor, exact_bytes(there.hbm_read + there.hbm_stored));
  }
  for (const GraphGroup& group : graph.groups) {
    GraphGroup g = group;
    g.nodes.clear();
    for (const std::string& id : group.nodes)
      if (std::ranges::find(g.nodes, drawn[id]) == g.nodes.end()) g.nodes.push_back(drawn[id]);
    if (g.nodes.size() > 1) out.groups.push_back(std::move(g));
  }
  return out;
}

GraphDifference with_closed_parts(GraphDifference difference, const BlockGraph& graph,
                                  const std::set<std::string>& closed) {
  std::map<std::string, std::string> part_of;
  for (const GraphNode& node : graph.nodes) part_of[node.label] = node.part;
  const auto mark = [&](const std::string& op) {
    if (closed.contains(part_of[op])) difference.operators.insert(part_id(part_of[op]));
  };
  const std::set<std::string> operators = difference.operators;
  for (const std::string& op : operators) mark(op);
  for (const GraphEdge& edge : graph.edges) {
    if (edge.choice.from.empty() || !difference.edges.contains(edge_text(edge.choice))) continue;
    mark(edge.choice.from);
    mark(edge.choice.to);
  }
  return difference;
}

}  // namespace fuseline::gui
