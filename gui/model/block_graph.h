// The block as a picture: operators, the tensors that come from outside, and between operators the
// edges that can be fused and split.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "gui/model/results.h"
#include "gui/model/roles.h"
#include "gui/model/selection.h"
#include "gui/model/table.h"

namespace fuseline::gui {

struct GraphNode {
  std::string id;  // "op:qkv", "tensor:w_qkv"; stays the same while groups change
  bool is_tensor = false;
  std::string label;   // the name
  std::string detail;  // "GEMM", "[12288, 4096] bf16"
  std::string tooltip;
  Colour colour;
  Thing thing;
  std::string part{};        // of the block: "attention" (graph_parts.h); of operators
  bool is_boundary = false;  // a tensor that comes into the block or leaves it
};

struct GraphEdge {
  std::string from, to;     // ids of nodes
  std::string tensor;       // that goes along it
  OnChipEdge choice{};      // between operators: what a click toggles
  bool can_toggle = false;  // of a prediction, outside attention's core
  bool on_chip = false;     // drawn dashed: it never leaves the chip
  bool fused = false;       // both ends are in one kernel
  Bytes hbm_read{};         // by the reading kernel, from HBM; what L2 held is not in it
  Bytes hbm_stored{};       // by the writing kernel, to addresses in HBM
  double thickness = 0;     // 0 to 1, by the root of the bytes that cross over those of the largest
                            // tensor that the plan keeps in memory
  std::string label;        // "33.6 MB" or "on chip"
  std::string tooltip;      // exact bytes, and why the two are fused or not
  std::string reason;
  Thing thing;
};

// A kernel with two or more operators: drawn as a hull behind them.
struct GraphGroup {
  std::size_t kernel = 0;  // index in the plan
  std::string name;
  std::vector<std::string> nodes;
  Colour colour;
  Thing thing;  // the kernel's first launch
};

struct BlockGraph {
  std::string title;   // "coda: one block of LLaMA-2-7B"
  std::string repeat;  // "× 32": how often the frame around the block stands for a layer
  std::vector<GraphNode> nodes;
  std::vector<GraphEdge> edges;
  std::vector<GraphGroup> groups;
  std::string problem;  // in place of the graph
  Subject about{};
  bool landscape = false;  // laid out from left to right
};

// Nodes and edges come in the order of the plan's graph, whatever the groups. Bytes of a
// measurement are those predicted for it: counters do not know tensors.
BlockGraph block_graph(const RunView& view);

// The graph as dot takes it, sizes in inches. It depends on nodes and on which of them are
// connected, and not on groups, bytes or roles, so that positions stay while groups change. Node i
// is "n<i>".
std::string dot_text(const BlockGraph& graph);

Table to_table(const BlockGraph& graph);

}  // namespace fuseline::gui
