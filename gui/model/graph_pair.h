// Two runs of one block side by side: which operators and edges of each the other has not, or has
// otherwise.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "gui/model/block_graph.h"

namespace fuseline::gui {

// Of one side.
struct GraphDifference {
  std::set<std::string> operators;  // that the other side does not have
  std::set<std::string> edges;      // edge_text(): the other side does not have them, or has their
                                // ends in one kernel where they are apart here, or the other way
  [[nodiscard]] bool empty() const { return operators.empty() && edges.empty(); }
};

struct GraphPair {
  BlockGraph left, right;
  GraphDifference only_left, only_right;
  std::vector<std::string>
      lines;              // in words: "coda has gate_up and swiglu in one kernel, eager apart"
  std::string problem{};  // in place of all: one has no graph, or they compute other things
};

GraphPair graph_pair(const RunView& left, const RunView& right);

Table to_table(const GraphPair& pair);

}  // namespace fuseline::gui
