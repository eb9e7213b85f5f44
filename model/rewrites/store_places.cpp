#include "model/rewrites/store_places.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "model/operators/all_operators.h"

namespace fuseline {

namespace in_store_places {
namespace {

// What an operator that reads the order of rows becomes where their places are known.
OpKind by_places(const Op& op) {
  if (op.kind == operators::sum_rows) return operators::sum_places;
  if (op.kind == operators::place_numbers) return operators::numbers_at;
  return {};
}

// The sort whose order the operator looks through. Null: it looks through none, or through one that
// no sort of this graph makes as its only result.
const Op* sorts(const Graph& graph, const Op& op) {
  if (by_places(op) == OpKind{}) return nullptr;
  for (const OpId id : graph.producers(op.reads[1].tensor)) {
    const Op& sort = graph.op(id);
    if (sort.kind == operators::sort_places && sort.writes.size() == 1 &&
        sort.writes[0] == op.reads[1])
      return &sort;
  }
  return nullptr;
}

bool applies(const Graph& graph) {
  return std::ranges::any_of(graph.ops(),
                             [&](const Op& op) { return sorts(graph, op) != nullptr; });
}

void apply(Block& block) {
  const Graph from = block.graph;
  std::map<TensorId, Operand> places;  // by the tensor of the order
  for (const Op& op : from.ops())
    if (const Op* sort = sorts(from, op)) places[sort->writes[0].tensor] = {};
  block.graph = replace_ops(from, [&](const Op& op, Graph& to) {
    if (op.kind == operators::sort_places) {
      const auto wanted = places.find(op.writes[0].tensor);
      if (wanted == places.end()) return false;
      const Tensor order = to.tensor(op.writes[0].tensor);
      std::string name = order.name + "_places";
      while (from.find_tensor(name)) name += "_";  // a block may have one of that name
      wanted->second =
          to.whole(add_activation(to, name, order.symbol, order.dtype, order.rows, order.cols));
      Op both = op;
      both.writes.push_back(wanted->second);
      to.add_op(std::move(both));
      return true;
    }
    if (sorts(from, op) == nullptr) return false;
    Op found = op;
    found.kind = by_places(op);
    found.reads[1] = places.at(op.reads[1].tensor);
    to.add_op(std::move(found));
    return true;
  });
}

}  // namespace
}  // namespace in_store_places

Rewrite store_places() {
  return {"store_places", "sorted rows say at which places they are, so that nobody looks for them",
          in_store_places::applies, in_store_places::apply};
}

}  // namespace fuseline
