// Building blocks of the operator table's rows: FLOPs by element or row, and lengths of sums.
#pragma once

#include <algorithm>
#include <span>

#include "model/operators.h"
#include "model/reference_ops.h"

namespace fuseline::table {

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
  const OpAttributes& a = op.attributes;
  return checked_product<Flops>(visible_pairs(a), a.batch, a.heads, k);
}

// 2·d per visible pair of every query head: each of attention's products.
inline Flops attention_flops(const Graph&, const Op& op) {
  const OpAttributes& a = op.attributes;
  return checked_product<Flops>(visible_pairs(a), a.batch, a.heads, 2, a.head_width);
}

inline std::int64_t one_term(const Graph&, const Op&) { return 1; }
inline std::int64_t input_columns(const Graph&, const Op& op) { return op.reads[0].cols; }
inline std::int64_t input_rows(const Graph&, const Op& op) { return op.reads[0].rows; }
inline std::int64_t head_columns(const Graph&, const Op& op) { return op.attributes.head_width; }
inline std::int64_t tile_columns(const Graph&, const Op& op) {
  return std::min(op.reads[0].cols, op.attributes.tile_cols);
}
inline std::int64_t tile_rows(const Graph&, const Op& op) {
  return std::min(op.reads[0].rows, op.attributes.tile_rows);
}

constexpr OperatorInfo element_wise(
    OpKind kind, const char* name, const char* formula, std::array<OperandSpec, 6> reads,
    OperandSpec write, Flops (*count)(const Graph&, const Op&),
    void (*reference)(const Graph&, const Op&, const TensorValues&, TensorValues&),
    Locality locality = Locality::tile_local, int half_read = -1, int index_read = -1) {
  OperatorInfo info{kind,  name,  OpClass::pointwise, locality,  formula,  reads,
                    write, count, one_term,           reference, half_read};
  info.index_read = index_read;
  return info;
}

constexpr OperandSpec kX{"x", "M", "N"};
constexpr OperandSpec kY{"y", "M", "N"};
constexpr OperandSpec kDy{"dy", "M", "N"};
constexpr OperandSpec kDx{"dx", "M", "N"};
constexpr OperandSpec kStats{"stats", "M", "C"};

// The rows of the kinds from attention_backward_dot on, in the order of OpKind.
std::span<const OperatorInfo> backward_operators();

}  // namespace fuseline::table
