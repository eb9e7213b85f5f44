#include "model/rewrites/split_product_sums.h"

#include <algorithm>

#include "model/operators/all_operators.h"

namespace fuseline {

namespace in_split_product_sums {
namespace {

bool sums_products(const Op& op) {
  const bool sum = op.kind == operators::sequence_sum || op.kind == operators::column_sum;
  return sum && op.reads.size() > 1;
}

bool split_products(const Op& op, Graph& to) {
  if (!sums_products(op)) return false;
  const Tensor x = to.tensor(op.reads[0].tensor);
  const Operand products = to.whole(add_activation(to, op.name + "_products", x.symbol, x.dtype,
                                                   op.reads[0].rows, op.reads[0].cols));
  to.add_op({op.name + "_mul", operators::mul, op.reads, {products}, {}, op.site, op.pass});
  to.add_op({op.name, op.kind, {products}, op.writes, op.attributes, op.site, op.pass});
  return true;
}

}  // namespace
}  // namespace in_split_product_sums

Rewrite split_product_sums() {
  return {"split_product_sums", "sums of products over rows become products and their sums",
          [](const Graph& graph) {
            return std::ranges::any_of(graph.ops(), in_split_product_sums::sums_products);
          },
          [](Block& block) {
            block.graph = replace_ops(block.graph, in_split_product_sums::split_products);
          }};
}

}  // namespace fuseline
