// Counts that many operators share: FLOPs by element or row, and lengths of sums.
#pragma once

#include <algorithm>

#include "base/units.h"
#include "model/operators/operator_table.h"

namespace fuseline {

template <int k>
Flops per_output(const Graph&, const Op& op) {
  return checked_product<Flops>(op.writes[0].rows, op.writes[0].cols, k);
}

template <int k>
Flops per_input(const Graph&, const Op& op) {
  return checked_product<Flops>(op.reads[0].rows, op.reads[0].cols, k);
}

// Per element k operations, per row r more.
template <int k, int r>
Flops per_row(const Graph& graph, const Op& op) {
  return per_input<k>(graph, op) + checked_product<Flops>(op.reads[0].rows, r);
}

// k operations for each visible pair of every query head.
template <int k>
Flops per_visible_pair(const Graph&, const Op& op) {
  const auto& a = op.attributes.as<AttentionShape>();
  return checked_product<Flops>(visible_pairs(a), a.batch, a.heads, k);
}

// 2·d per visible pair of every query head: each of attention's products with Q, K or their
// gradients. With V or the result's gradient: 2·(width of a head of V).
inline Flops attention_flops(const Graph&, const Op& op) {
  const auto& a = op.attributes.as<AttentionShape>();
  return checked_product<Flops>(visible_pairs(a), a.batch, a.heads, 2, a.head_width);
}
inline Flops attention_value_flops(const Graph&, const Op& op) {
  const auto& a = op.attributes.as<AttentionShape>();
  return checked_product<Flops>(visible_pairs(a), a.batch, a.heads, 2, a.v_width());
}

inline Flops product_flops(const Graph&, const Op& op) {
  const GemmShape shape = gemm_shape(op);
  return checked_product<Flops>(2, shape.M, shape.N, shape.K);
}
inline std::int64_t product_length(const Graph&, const Op& op) { return gemm_shape(op).K; }

inline std::int64_t one_term(const Graph&, const Op&) { return 1; }
inline std::int64_t input_columns(const Graph&, const Op& op) { return op.reads[0].cols; }
inline std::int64_t input_rows(const Graph&, const Op& op) { return op.reads[0].rows; }
inline std::int64_t head_columns(const Graph&, const Op& op) {
  return op.attributes.as<AttentionShape>().head_width;
}
inline std::int64_t head_value_columns(const Graph&, const Op& op) {
  return op.attributes.as<AttentionShape>().v_width();
}
inline std::int64_t tile_columns(const Graph&, const Op& op) {
  return std::min(op.reads[0].cols, op.attributes.as<PartialTile>().cols);
}
inline std::int64_t tile_rows(const Graph&, const Op& op) {
  return std::min(op.reads[0].rows, op.attributes.as<PartialTile>().rows);
}

// Tokens times the query heads that share a key/value head: the terms of one element of dK and dV.
inline std::int64_t queries_of_a_key(const Graph&, const Op& op) {
  const auto& a = op.attributes.as<AttentionShape>();
  return a.q_tokens * (a.heads / a.kv_heads);
}
inline std::int64_t heads_of_a_key(const Graph&, const Op& op) {
  return op.attributes.as<AttentionShape>().heads / op.attributes.as<AttentionShape>().kv_heads;
}

}  // namespace fuseline
