// A rewrite changes the graph and keeps its algebra. One per pair of files: can it apply, apply it.
#pragma once

#include <functional>
#include <string>

#include "model/plan.h"

namespace fuseline {

// A block on its way to a plan: the graph so far, and how its new inputs and weights are made from
// the original block's.
struct Block {
  Graph graph;
  Preparation preparation;
};

struct Rewrite {
  const char* name;
  const char* summary;
  bool (*applies)(const Graph&);
  void (*apply)(Block&);  // asserts applies()
};

// Copies the tensors (ids stay) and the operators, except where `replace` emitted something in the
// operator's place and returned true.
Graph replace_ops(const Graph& from, const std::function<bool(const Op&, Graph& to)>& replace);

// Without the tensors that no operator touches; ids change.
Graph without_unused_tensors(const Graph& graph);

// A new activation like `like` (name, symbol and shape given).
TensorId add_activation(Graph& graph, const std::string& name, const std::string& symbol,
                        Dtype dtype, std::int64_t rows, std::int64_t cols);

// The whole tensor of that name in the preparation's graph, added when it is not there yet.
Operand prepared(Block& block, const Tensor& tensor);

}  // namespace fuseline
