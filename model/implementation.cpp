#include "model/implementation.h"

#include <algorithm>

#include "model/grouping.h"
#include "model/operators.h"
#include "model/why_not.h"

namespace fuseline {

namespace {

bool of_class(const Graph& graph, const std::vector<OpId>& ops, OpClass c) {
  return any_op(graph, ops, [c](const Op& op) { return operator_info(op.kind).op_class == c; });
}

bool whole_attention(const Graph& graph, const std::vector<OpId>& ops) {
  return any_op(graph, ops, [](const Op& op) { return op.kind == OpKind::attention_scores; }) &&
         any_op(graph, ops, [](const Op& op) { return op.kind == OpKind::attention_context; });
}

// A slice of several rows has gaps between them in memory.
bool reads_gaps(const Graph& graph, const Op& op) {
  return std::ranges::any_of(op.reads, [&](const Operand& o) {
    return o.rows > 1 && o.cols < graph.tensor(o.tensor).cols;
  });
}

Implementation framework_primitive(const Graph& graph, const Op& op) {
  switch (op.kind) {
    case OpKind::rms_norm:
    case OpKind::layer_norm:
      return Implementation::row_norm;
    case OpKind::row_mean:
    case OpKind::softmax:
      return Implementation::framework_reduce;
    case OpKind::concat_halves:
      return Implementation::concat;
    // Broadcast over rows or heads, or halves of heads: index arithmetic for each element.
    case OpKind::mul_rows:
    case OpKind::mul_table:
    case OpKind::negate_half:
    case OpKind::cache_append:
      return Implementation::strided;
    // One row: the weight has the shape of x, nothing is broadcast.
    case OpKind::mul_cols:
      return op.reads[0].rows == 1 ? Implementation::vectorized : Implementation::strided;
    // Two layouts meet in RoPE's sum, the slice's and the concatenation's; one token has only one.
    case OpKind::add:
      return op.attributes.q_tokens > 1 ? Implementation::strided : Implementation::vectorized;
    // Elements that grow defeat the 16-byte accesses on both sides.
    case OpKind::cast:
      return graph.tensor(op.writes[0].tensor).dtype == Dtype::fp32 ? Implementation::strided
                                                                    : Implementation::vectorized;
    default:
      return reads_gaps(graph, op) ? Implementation::strided : Implementation::vectorized;
  }
}

bool library_can(const Graph& graph, const std::vector<OpId>& ops) {
  return std::all_of(ops.begin() + 1, ops.end(),
                     [&](OpId id) { return library_epilogue(graph.op(id)); });
}

}  // namespace

Implementation framework_implementation(const Graph& graph, const std::vector<OpId>& ops) {
  if (whole_attention(graph, ops)) return Implementation::flash_attention;
  if (has_mainloop(graph, ops)) return Implementation::library_gemm;
  return framework_primitive(graph, graph.op(ops.back()));
}

Implementation hand_written_implementation(const Graph& graph, const std::vector<OpId>& ops) {
  if (whole_attention(graph, ops)) return Implementation::flash_attention;
  if (has_mainloop(graph, ops))
    return library_can(graph, ops) ? Implementation::library_gemm : Implementation::epilogue_gemm;
  if (any_op(graph, ops, [](const Op& op) { return op.kind == OpKind::row_stats_finish; }))
    return Implementation::finisher;
  const bool rows = any_op(graph, ops, [](const Op& op) {
    return operator_info(op.kind).locality == Locality::full_row;
  });
  return rows ? Implementation::row_norm : Implementation::vectorized;
}

Implementation generated_implementation(const Graph& graph, const std::vector<OpId>& ops) {
  const Implementation by_hand = hand_written_implementation(graph, ops);
  if (by_hand == Implementation::row_norm) return Implementation::generated_reduction;
  if (by_hand == Implementation::vectorized) return Implementation::generated_pointwise;
  return by_hand;
}

KernelKind kind_of(const Graph& graph, const std::vector<OpId>& ops) {
  if (whole_attention(graph, ops)) return KernelKind::attention;
  if (has_mainloop(graph, ops)) return KernelKind::gemm;
  if (of_class(graph, ops, OpClass::norm)) return KernelKind::norm;
  const bool rows = any_op(graph, ops, [](const Op& op) {
    return operator_info(op.kind).locality == Locality::full_row;
  });
  return rows ? KernelKind::reduction : KernelKind::pointwise;
}

}  // namespace fuseline
