#include "model/rewrites/split_column_sums.h"
#include "model/operators/all_operators.h"

#include <algorithm>
#include <utility>

namespace fuseline {

namespace in_split_column_sums {
namespace {

bool is_column_sum(const Op& op) {
  return op.kind == operators::column_sum || op.kind == operators::norm_weight_grad;
}

bool split(const Op& op, Graph& to) {
  if (!is_column_sum(op)) return false;
  const Operand& x = op.reads[0];
  const Operand partials =
      to.whole(add_activation(to, op.name + "_partials", "[N, ⌈M/128⌉]", Dtype::fp32, x.cols,
                              ceil_div(x.rows, partial_tile)));
  to.add_op({op.name + "_partial",
             operators::col_stats_partial,
             op.reads,
             {partials},
             PartialTile{.rows = partial_tile},
             op.site,
             op.pass});
  to.add_op({op.name, operators::col_stats_finish, {partials}, op.writes, {}, op.site, op.pass});
  return true;
}

}  // namespace
}  // namespace in_split_column_sums

Rewrite split_column_sums() {
  return {
      "split_column_sums", "sums over rows leave partials of 128 rows that a finisher adds",
      [](const Graph& graph) {
        return std::ranges::any_of(graph.ops(), in_split_column_sums::is_column_sum);
      },
      [](Block& block) { block.graph = replace_ops(block.graph, in_split_column_sums::split); }};
}

}  // namespace fuseline
