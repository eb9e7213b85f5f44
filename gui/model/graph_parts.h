// Parts of a block that a reader knows, attention and MLP, each of which can be drawn as one box:
// what is left to see is what goes between them.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "gui/model/block_graph.h"
#include "gui/model/graph_pair.h"
#include "model/graph.h"

namespace fuseline::gui {

// The name of the part of each operator, by the operator's name. A part ends with a residual sum;
// it is called by what it computes: "attention", "MLP", "experts", else "part 2". Operators of the
// backward pass are those of "attention, backward". Runs of one block agree, however they rewrite
// it: a part is made of the block's steps (Op::site).
std::map<std::string, std::string> parts_of(const Graph& graph);

// The parts in the order of the graph.
std::vector<std::string> part_names(const BlockGraph& graph);

// The id of the box that stands for a part: "part:attention".
std::string part_id(const std::string& part);

// The graph with the named parts as one box each. Weights, tables and caches that one part alone
// reads are inside; what goes into it and out of it stays, with the bytes of all its readers.
BlockGraph with_closed_parts(const BlockGraph& graph, const std::set<std::string>& closed);

// What differs, as the closed parts show it: a box differs where anything in it does.
GraphDifference with_closed_parts(GraphDifference difference, const BlockGraph& graph,
                                  const std::set<std::string>& closed);

}  // namespace fuseline::gui
