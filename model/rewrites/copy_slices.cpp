#include "model/rewrites/copy_slices.h"

#include <algorithm>
#include <utility>

#include "model/operators/all_operators.h"

namespace fuseline {

namespace in_copy_slices {
namespace {

bool reads_slice(const Graph& graph, const Op& op) {
  return op.kind == operators::head_norm &&
         op.reads[0].cols < graph.tensor(op.reads[0].tensor).cols;
}

bool applies(const Graph& graph) {
  return std::ranges::any_of(graph.ops(), [&](const Op& op) { return reads_slice(graph, op); });
}

bool copy(const Op& op, Graph& to) {
  if (!reads_slice(to, op)) return false;
  const Tensor like = to.tensor(op.writes[0].tensor);
  const Operand& x = op.reads[0];
  const Operand dense =
      to.whole(add_activation(to, op.name + "_dense", like.symbol, like.dtype, x.rows, x.cols));
  to.add_op({op.name + "_copy", operators::copy, {x}, {dense}, {}, op.site, op.pass});
  Op norm = op;
  norm.reads[0] = dense;
  to.add_op(std::move(norm));
  return true;
}

}  // namespace
}  // namespace in_copy_slices

Rewrite copy_slices() {
  return {"copy_slices", "slices are copied before the library's norm of each head",
          in_copy_slices::applies,
          [](Block& block) { block.graph = replace_ops(block.graph, in_copy_slices::copy); }};
}

}  // namespace fuseline
