#include "model/backward.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "model/backward_adjoint.h"
#include "model/operators/operator_table.h"

namespace fuseline {

Graph differentiate(const Graph& graph, const BackwardOptions& options) {
  FUSELINE_ASSERT(!has_backward(graph), "the graph has a backward pass already");
  Graph joint = Adjoint(graph, options).run();
  joint.derived_from(graph);
  return joint;
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
