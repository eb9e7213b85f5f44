#include "model/rewrites/split_cross_entropy.h"
#include "model/operators/all_operators.h"

#include <algorithm>

namespace fuseline {

namespace in_split_cross_entropy {
namespace {

bool is_loss(const Op& op) { return op.kind == operators::cross_entropy; }

bool split(const Op& op, Graph& to) {
  if (!is_loss(op)) return false;
  const Operand& x = op.reads[0];
  const Operand partials =
      to.whole(add_activation(to, op.name + "_partials", "[M, 3⌈V/128⌉]", Dtype::fp32, x.rows,
                              3 * ceil_div(x.cols, partial_tile)));
  to.add_op({op.name + "_partial",
             operators::cross_entropy_partial,
             op.reads,
             {partials},
             PartialTile{.cols = partial_tile},
             op.site,
             op.pass});
  to.add_op(
      {op.name, operators::cross_entropy_finish, {partials}, op.writes, {}, op.site, op.pass});
  return true;
}

}  // namespace
}  // namespace in_split_cross_entropy

Rewrite split_cross_entropy() {
  return {
      "split_cross_entropy",
      "the loss leaves partials of 128 columns behind the LM head, and a finisher",
      [](const Graph& graph) {
        return std::ranges::any_of(graph.ops(), in_split_cross_entropy::is_loss);
      },
      [](Block& block) { block.graph = replace_ops(block.graph, in_split_cross_entropy::split); }};
}

}  // namespace fuseline
