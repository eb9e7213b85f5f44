// What a norm of every head and its gradients have in common: heads lie side by side in a row, and
// each is divided by the root of its mean square.
#pragma once

#include "model/operators/operator.h"
#include "model/operators/support/lowering.h"
#include "model/operators/support/view.h"

namespace fuseline {

// r of columns [first, first + d) of row m.
double head_scale(const reference::View<const double>& x, const HeadNorm& norm, std::int64_t m,
                  std::int64_t first);
// The same of every head at each of its columns.
Value head_scale(Emitter& e, Value x, const HeadNorm& norm);

// For each element k operations, for each head of a row r more.
template <int k, int r>
Flops per_head(const Graph&, const Op& op) {
  const Operand& x = op.reads[0];
  const std::int64_t heads = x.cols / op.attributes.as<HeadNorm>().head_width;
  return checked_product<Flops>(x.rows, x.cols, k) + checked_product<Flops>(x.rows, heads, r);
}

inline std::int64_t norm_head_width(const Op& op) {
  return op.attributes.as<HeadNorm>().head_width;
}
inline std::int64_t norm_columns(const Graph&, const Op& op) { return norm_head_width(op); }

}  // namespace fuseline
