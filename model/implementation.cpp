#include "model/implementation.h"

#include <algorithm>

#include "model/grouping.h"
#include "model/operators.h"
#include "model/why_not.h"

namespace fuseline {

namespace {

bool has_kind(const Graph& graph, const std::vector<OpId>& ops, OpKind kind) {
  return any_op(graph, ops, [kind](const Op& op) { return op.kind == kind; });
}

// Forward or backward.
bool whole_attention(const Graph& graph, const std::vector<OpId>& ops) {
  return has_kind(graph, ops, OpKind::attention_scores) &&
         (has_kind(graph, ops, OpKind::attention_context) ||
          has_kind(graph, ops, OpKind::attention_d_q));
}

bool leaves_partials(const Op& op) {
  return op.kind == OpKind::row_stats_partial || op.kind == OpKind::row_dot_partial ||
         op.kind == OpKind::col_stats_partial || op.kind == OpKind::cross_entropy_partial;
}

// A reduction along rows or columns, or a loop that stores nothing but partial sums.
bool reduces(const Graph& graph, const std::vector<OpId>& ops) {
  const bool whole = any_op(graph, ops, [](const Op& op) {
    const Locality l = operator_info(op.kind).locality;
    return l == Locality::full_row || l == Locality::full_column;
  });
  if (whole) return true;
  return std::ranges::all_of(ops, [&](OpId id) {
    if (leaves_partials(graph.op(id))) return true;
    const TensorId made = graph.op(id).writes[0].tensor;
    return graph.tensor(made).role == Role::activation &&
           std::ranges::all_of(graph.consumers(made), [&](OpId reader) {
             return std::find(ops.begin(), ops.end(), reader) != ops.end();
           });
  });
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
    case OpKind::rms_norm_backward:
    case OpKind::layer_norm_backward:
    case OpKind::norm_weight_grad:
    // Scores in memory are the textbook's own: no framework's kernel is imitated.
    case OpKind::softmax:
    case OpKind::softmax_backward:
      return Implementation::row_norm;
    case OpKind::row_mean:
    case OpKind::column_sum:
    case OpKind::cross_entropy:
      return Implementation::framework_reduce;
    // The attention library's own.
    case OpKind::attention_backward_dot:
    case OpKind::head_sum:
      return Implementation::vectorized;
    case OpKind::concat_halves:
      return Implementation::concat;
    // Broadcast over rows or heads, or halves of heads: index arithmetic for each element.
    case OpKind::mul_rows:
    case OpKind::mul_table:
    case OpKind::negate_half:
    case OpKind::cache_append:
    case OpKind::expand_rows:
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

// What the attention library launches around its backward kernel.
bool around_attention(const Graph& graph, const std::vector<OpId>& ops) {
  return std::ranges::all_of(ops, [&](OpId id) {
    const Op& op = graph.op(id);
    return op.kind == OpKind::attention_backward_dot || op.kind == OpKind::head_sum ||
           (op.kind == OpKind::cast && op.site == "attention_bwd");
  });
}

}  // namespace

Implementation framework_implementation(const Graph& graph, const std::vector<OpId>& ops) {
  if (whole_attention(graph, ops)) return Implementation::library_attention;
  if (has_mainloop(graph, ops)) return Implementation::library_gemm;
  if (has_kind(graph, ops, OpKind::norm_weight_grad)) return Implementation::row_norm;
  return framework_primitive(graph, graph.op(ops.back()));
}

Implementation hand_written_implementation(const Graph& graph, const std::vector<OpId>& ops) {
  if (whole_attention(graph, ops)) return Implementation::flash_attention;
  if (has_mainloop(graph, ops))
    return library_can(graph, ops) ? Implementation::library_gemm : Implementation::epilogue_gemm;
  const bool finishes = any_op(graph, ops, [](const Op& op) {
    return op.kind == OpKind::row_stats_finish || op.kind == OpKind::row_dot_finish ||
           op.kind == OpKind::col_stats_finish || op.kind == OpKind::cross_entropy_finish;
  });
  if (finishes) return Implementation::finisher;
  if (around_attention(graph, ops) || has_kind(graph, ops, OpKind::embedding_backward))
    return Implementation::vectorized;
  return reduces(graph, ops) ? Implementation::resident_row : Implementation::vectorized;
}

Implementation generated_implementation(const Graph& graph, const std::vector<OpId>& ops) {
  if (whole_attention(graph, ops)) return Implementation::library_attention;
  const Implementation by_hand = hand_written_implementation(graph, ops);
  if (around_attention(graph, ops)) return by_hand;
  if (by_hand == Implementation::resident_row) return Implementation::generated_reduction;
  if (by_hand == Implementation::vectorized) return Implementation::generated_pointwise;
  return by_hand;
}

KernelKind kind_of(const Graph& graph, const std::vector<OpId>& ops) {
  if (whole_attention(graph, ops)) return KernelKind::attention;
  if (has_mainloop(graph, ops)) return KernelKind::gemm;
  const bool norm = any_op(
      graph, ops, [](const Op& op) { return operator_info(op.kind).op_class == OpClass::norm; });
  if (norm) return KernelKind::norm;
  return reduces(graph, ops) ? KernelKind::reduction : KernelKind::pointwise;
}

}  // namespace fuseline
