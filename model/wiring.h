// Which operators feed which, found once for many questions about the same graph: whether two
// groups may merge is asked for every edge while groups grow, and the answer needs all edges each
// time.
#pragma once

#include <string>
#include <vector>

#include "model/graph.h"
#include "model/target.h"

namespace fuseline {

// Of a graph that does not change meanwhile.
struct Wiring {
  explicit Wiring(const Graph& graph);

  std::vector<Edge> edges;
  std::vector<OpId> order;  // topological_order()
};

// As the function of why_not.h without it.
std::string why_not_merge(const Graph& graph, const Wiring& wiring,
                          const std::vector<std::vector<OpId>>& groups, std::size_t a,
                          std::size_t b, const Target& target);

}  // namespace fuseline
