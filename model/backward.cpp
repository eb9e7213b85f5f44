#include "model/backward.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "model/backward_adjoint.h"
#include "model/operators/operator_table.h"

namespace fuseline {

Graph forward_part(const Graph& graph) {
  Graph forward;
  std::vector<TensorId> moved(graph.tensors().size());
  std::vector<bool> used(moved.size());
  for (const Op& op : graph.ops()) {
    if (op.pass == Pass::backward) continue;
    for (const Operand& o : op.reads) used[static_cast<std::size_t>(o.tensor.index)] = true;
    used[static_cast<std::size_t>(op.writes[0].tensor.index)] = true;
  }
  for (std::size_t i = 0; i < used.size(); ++i)
    if (used[i]) moved[i] = forward.add_tensor(graph.tensors()[i]);
  forward.take_relations(graph, moved);
  for (Op op : graph.ops()) {
    if (op.pass == Pass::backward) continue;
    op.writes.resize(1);  // saved statistics are the backward pass's business
    for (auto* operands : {&op.reads, &op.writes})
      for (Operand& o : *operands) o.tensor = moved[static_cast<std::size_t>(o.tensor.index)];
    forward.add_op(std::move(op));
  }
  return forward;
}

Graph differentiate(const Graph& graph, const BackwardOptions& options) {
  return Adjoint(forward_part(graph), options).run();
}

bool has_backward(const Graph& graph) {
  return std::ranges::any_of(graph.ops(), [](const Op& op) { return op.pass == Pass::backward; });
}

std::vector<SavedTensor> saved_tensors(const Graph& graph) {
  std::vector<SavedTensor> saved;
  for (std::size_t i = 0; i < graph.tensors().size(); ++i) {
    const TensorId id{static_cast<std::int32_t>(i)};
    const Role role = graph.tensor(id).role;
    if (role == Role::weight || role == Role::table) continue;
    bool in_forward = false;
    std::vector<Operand> read;
    for (const Op& op : graph.ops()) {
      const bool backward = op.pass == Pass::backward;
      for (const Operand& o : op.writes) in_forward |= !backward && o.tensor == id;
      for (const Operand& o : op.reads) {
        if (o.tensor != id) continue;
        in_forward |= !backward;
        if (backward) read.push_back(o);
      }
    }
    if (in_forward && !read.empty()) saved.push_back({id, distinct_bytes(graph, read)});
  }
  return saved;
}

}  // namespace fuseline
