// Operators and tensors of a graph by their names.
#pragma once

#include <string>

#include "model/graph.h"

namespace fuseline::test {

inline const Op& op(const Graph& g, const std::string& name) {
  return g.op(g.find_op(name).value());
}

inline const Tensor& tensor(const Graph& g, const std::string& name) {
  return g.tensor(g.find_tensor(name).value());
}

}  // namespace fuseline::test
