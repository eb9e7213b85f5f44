#include "model/rewrites/rewrite.h"

#include <utility>
#include <vector>

namespace fuseline {

Graph replace_ops(const Graph& from, const std::function<bool(const Op&, Graph& to)>& replace) {
  Graph to;
  std::vector<TensorId> same;
  for (const Tensor& t : from.tensors()) same.push_back(to.add_tensor(t));
  to.take_relations(from, same);
  for (const Op& op : from.ops())
    if (!replace(op, to)) to.add_op(op);
  return to;
}

Graph without_unused_tensors(const Graph& graph) {
  std::vector<bool> used(graph.tensors().size());
  for (const Op& op : graph.ops())
    for (const auto* operands : {&op.reads, &op.writes})
      for (const Operand& o : *operands) used[static_cast<std::size_t>(o.tensor.index)] = true;
  Graph to;
  std::vector<TensorId> moved(used.size());
  for (std::size_t i = 0; i < used.size(); ++i)
    if (used[i]) moved[i] = to.add_tensor(graph.tensors()[i]);
  to.take_relations(graph, moved);
  for (Op op : graph.ops()) {
    for (auto* operands : {&op.reads, &op.writes})
      for (Operand& o : *operands) o.tensor = moved[static_cast<std::size_t>(o.tensor.index)];
    to.add_op(std::move(op));
  }
  return to;
}

TensorId add_activation(Graph& graph, const std::string& name, const std::string& symbol,
                        Dtype dtype, std::int64_t rows, std::int64_t cols) {
  return graph.add_tensor({.name = name,
                           .symbol = symbol,
                           .role = Role::activation,
                           .dtype = dtype,
                           .rows = rows,
                           .cols = cols});
}

Operand prepared(Block& block, const Tensor& tensor) {
  Graph& graph = block.preparation.graph;
  const auto known = graph.find_tensor(tensor.name);
  return graph.whole(known ? *known : graph.add_tensor(tensor));
}

}  // namespace fuseline
