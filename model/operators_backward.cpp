// The operator table's rows of the backward pass. FLOPs are counted in the formula's order; a row
// statistic that was saved costs nothing here.
#include <array>

#include "model/operator_counts.h"

namespace fuseline::table {

namespace {

// Tokens times the query heads that share a key/value head: the terms of one element of dK and dV.
std::int64_t queries_of_a_key(const Graph&, const Op& op) {
  const OpAttributes& a = op.attributes;
  return a.q_tokens * (a.heads / a.kv_heads);
}

std::int64_t heads_of_a_key(const Graph&, const Op& op) {
  return op.attributes.heads / op.attributes.kv_heads;
}

// One addition for every element that joins another.
Flops head_sum_flops(const Graph& graph, const Op& op) {
  Flops additions = per_input<1>(graph, op);
  return additions -= per_output<1>(graph, op);
}

// x̂ from x and statistics [M, 1] takes one operation an element, from [M, 2] two.
Flops normalise(const Op& op, std::size_t stats) {
  return checked_product<Flops>(op.reads[0].rows, op.reads[0].cols, op.reads[stats].cols);
}

Flops norm_weight_flops(const Graph& graph, const Op& op) {
  return normalise(op, 2) + per_input<2>(graph, op);
}

Flops norm_apply_flops(const Graph& graph, const Op& op) {
  const Flops scaled = normalise(op, 1) + per_input<1>(graph, op);
  return op.reads.size() > 3 ? scaled + per_input<1>(graph, op) : scaled;
}

// s = σ(g) 3, t = g·s, du = dy·t, s + t(1 - s) 3, ·u, ·dy; the recomputed output t·u one more.
Flops swiglu_backward_flops(const Graph& graph, const Op& op) {
  return op.writes.size() > 1 ? per_input<11>(graph, op) : per_input<10>(graph, op);
}

// Σ dy·y 2; y - b one more; Σ dy·g two more.
Flops row_dot_flops(const Graph& graph, const Op& op) {
  if (op.reads.size() == 2) return per_input<2>(graph, op);
  return op.reads.size() == 3 ? per_input<3>(graph, op) : per_input<5>(graph, op);
}

// The sum of the partials, and a division for each result.
Flops row_dot_finish_flops(const Graph& graph, const Op& op) {
  return per_input<1>(graph, op) + per_output<1>(graph, op);
}

// γ·p, x̂·c, -, ·r, + residual gradient where there is one; the mean of a LayerNorm one more
// subtraction.
Flops norm_deferred_flops(const Graph& graph, const Op& op) {
  Flops count = normalise(op, 3) + per_input<4>(graph, op);
  if (op.reads.size() > 5) count += per_input<1>(graph, op);
  if (op.reads[4].cols == 2) count += per_input<1>(graph, op);
  return count;
}

// Of each tile: m - max, exp, ·s, and the three reductions; log, + max, - target.
Flops cross_entropy_finish_flops(const Graph& graph, const Op& op) {
  return per_input<2>(graph, op) + checked_product<Flops>(op.reads[0].rows, 3);
}

Flops col_partial_flops(const Graph& graph, const Op& op) {
  if (op.reads.size() == 1) return per_input<1>(graph, op);
  const Flops product = per_input<2>(graph, op);
  return op.reads.size() > 2 ? product + normalise(op, 2) : product;
}

constexpr OperatorInfo attention(OpKind kind, const char* name, Locality locality,
                                 const char* formula, std::array<OperandSpec, 6> reads,
                                 OperandSpec write, Flops (*count)(const Graph&, const Op&),
                                 std::int64_t (*length)(const Graph&, const Op&),
                                 void (*reference)(const Graph&, const Op&, const TensorValues&,
                                                   TensorValues&)) {
  return {kind,  name,   OpClass::attention, locality, formula, reads, write,
          count, length, reference};
}

constexpr OperatorInfo sum(OpKind kind, const char* name, OpClass op_class, Locality locality,
                           const char* formula, std::array<OperandSpec, 6> reads, OperandSpec write,
                           Flops (*count)(const Graph&, const Op&),
                           std::int64_t (*length)(const Graph&, const Op&),
                           void (*reference)(const Graph&, const Op&, const TensorValues&,
                                             TensorValues&)) {
  return {kind, name, op_class, locality, formula, reads, write, count, length, reference};
}

constexpr OperandSpec kProbs{"p", "P", "S"};
constexpr OperandSpec kDProbs{"dp", "P", "S"};
constexpr OperandSpec kDScores{"ds", "P", "S"};
constexpr OperandSpec kQueries{"dy", "M", "Q"};
constexpr OperandSpec kKeys{"k", "R", "C"};
constexpr OperandSpec kWeight{"w", "1", "N"};
constexpr OperandSpec kTargets{"targets", "M", "1"};
constexpr OperandSpec kLoss{"loss", "M", "1"};

constexpr OperatorInfo with_indices(OperatorInfo info, int read) {
  info.index_read = read;
  return info;
}

constexpr OperatorInfo with_saved(OperatorInfo info, OperandSpec saved) {
  info.also_writes = saved;
  return info;
}

constexpr OperatorInfo with_recomputed_output(OperatorInfo info) {
  info.also_writes = kY;
  return info;
}

// In the order of OpKind.
constexpr auto kBackward = std::to_array<OperatorInfo>({
    attention(OpKind::attention_backward_dot, "attention_backward_dot", Locality::full_row,
              "delta = sum of dy·y over each head", {{kQueries, {"y", "M", "Q"}}},
              {"delta", "P", "1"}, per_input<2>, head_columns, reference::attention_backward_dot),
    attention(OpKind::attention_d_probs, "attention_d_probs", Locality::contraction,
              "dp = dy v^T for each head, visible pairs", {{kQueries, {"v", "R", "C"}}}, kDProbs,
              attention_flops, head_columns, reference::attention_d_probs),
    attention(OpKind::softmax_backward, "softmax_backward", Locality::full_row,
              "ds = p·(dp - sum of p·dp over the row)", {{kProbs, kDProbs}}, kDScores,
              per_visible_pair<4>, input_columns, reference::softmax_backward),
    attention(OpKind::softmax_backward_delta, "softmax_backward_delta", Locality::tile_local,
              "ds = p·(dp - delta), delta one value a row",
              {{kProbs, kDProbs, {"delta", "P", "1"}}}, kDScores, per_visible_pair<2>, one_term,
              reference::softmax_backward_delta),
    attention(OpKind::softmax_recompute, "softmax_recompute", Locality::tile_local,
              "p = exp(s - lse), visible columns, lse one value a row",
              {{{"s", "P", "S"}, {"lse", "P", "1"}}}, kProbs, per_visible_pair<2>, one_term,
              reference::softmax_recompute),
    attention(OpKind::attention_d_q, "attention_d_q", Locality::contraction,
              "dq = scale·ds k for each head", {{kDScores, kKeys}}, {"dq", "M", "Q"},
              attention_flops, input_columns, reference::attention_d_q),
    attention(OpKind::attention_d_k, "attention_d_k", Locality::contraction,
              "dk = scale·ds^T q, summed over the heads that share a key",
              {{kDScores, {"q", "M", "Q"}}}, {"dk", "R", "C"}, attention_flops, queries_of_a_key,
              reference::attention_d_k),
    attention(OpKind::attention_d_v, "attention_d_v", Locality::contraction,
              "dv = p^T dy, summed over the heads that share a value", {{kProbs, kQueries}},
              {"dv", "R", "C"}, attention_flops, queries_of_a_key, reference::attention_d_v),
    sum(OpKind::rms_norm_backward, "rms_norm_backward", OpClass::norm, Locality::full_row,
        "dx = r·(g - z·mean(g·z)), g = w·dy, z = r·x", {{kDy, kX, kWeight, {"stats", "M", "1"}}},
        kDx, per_row<7, 1>, input_columns, reference::norm_backward),
    sum(OpKind::layer_norm_backward, "layer_norm_backward", OpClass::norm, Locality::full_row,
        "dx = r·(g - mean(g) - z·mean(g·z)), g = w·dy, z = r·x - r·mean(x)",
        {{kDy, kX, kWeight, {"stats", "M", "2"}}}, kDx, per_row<10, 2>, input_columns,
        reference::norm_backward),
    sum(OpKind::norm_weight_grad, "norm_weight_grad", OpClass::reduction, Locality::full_column,
        "dw = sum over rows of dy·z, z = r·x (- r·mean)", {{kDy, kX, kStats}}, {"dw", "1", "N"},
        norm_weight_flops, input_rows, reference::norm_weight_grad),
    element_wise(OpKind::norm_apply, "norm_apply", "y = z·w (+ b), z = r·x (- r·mean)",
                 {{kX, kStats, kWeight, {"b", "1", "N", true}}}, kY, norm_apply_flops,
                 reference::norm_apply),
    element_wise(OpKind::rope_backward, "rope_backward",
                 "(a, b) -> (a·cos + b·sin, b·cos - a·sin) for each pair",
                 {{kDy, {"cos", "T", "d"}, {"sin", "T", "d"}}}, kDx, per_output<3>,
                 reference::rope_backward, Locality::pair_local),
    with_recomputed_output(element_wise(
        OpKind::swiglu_backward, "swiglu_backward",
        "(dg, du) = (dy·u·(s + t·(1 - s)), dy·t), s = sigmoid(g), t = g·s; recomputed y = t·u",
        {{kDy, {"gu", "M", "2N"}}}, {"dgu", "M", "2N"}, swiglu_backward_flops,
        reference::swiglu_backward, Locality::pair_local)),
    element_wise(OpKind::gelu_backward, "gelu_backward",
                 "dx = dy·((1 + h)/2 + x/2·(1 - h²)·u'), h = tanh(u), u = sqrt(2/pi)·(x + "
                 "0.044715 x³)",
                 {{kDy, kX}}, kDx, per_output<18>, reference::gelu_backward),
    element_wise(OpKind::silu_backward, "silu_backward",
                 "dx = dy·s·(1 + x·(1 - s)), s = sigmoid(x)", {{kDy, kX}}, kDx, per_output<8>,
                 reference::silu_backward),
    element_wise(OpKind::grad_add, "grad_add", "y = x + z, gradients of one tensor's readers",
                 {{kX, {"z", "M", "N"}}}, kY, per_output<1>, reference::add),
    sum(OpKind::column_sum, "column_sum", OpClass::reduction, Locality::full_column,
        "y = sum of each column", {{kX}}, {"y", "1", "N"}, per_input<1>, input_rows,
        reference::column_sum),
    element_wise(OpKind::concat, "concat", "y = (a, b, c) side by side",
                 {{{"a", "M", "A"}, {"b", "M", "B"}, {"c", "M", "C", true}}}, kY, per_output<0>,
                 reference::concat),
    sum(OpKind::row_dot_partial, "row_dot_partial", OpClass::reduction, Locality::tile_local,
        "sum of dy·(y - b) (and of dy·g) over each tile of columns",
        {{kDy, kY, {"b", "1", "N", true}, {"g", "1", "N", true}}}, {"partials", "M", "P"},
        row_dot_flops, tile_columns, reference::row_dot_partial),
    sum(OpKind::row_dot_finish, "row_dot_finish", OpClass::reduction, Locality::full_row,
        "c = sum of partials / D", {{{"partials", "M", "P"}}}, {"c", "M", "C"},
        row_dot_finish_flops, input_columns, reference::row_dot_finish),
    element_wise(OpKind::norm_backward_deferred, "norm_backward_deferred",
                 "y = (dres +) r·(w·p - z·c0 (- c1)), z = r·h (- r·mean)",
                 {{{"p", "M", "N"},
                   {"h", "M", "N"},
                   kWeight,
                   kStats,
                   {"c", "M", "C"},
                   {"dres", "M", "N", true}}},
                 kY, norm_deferred_flops, reference::norm_backward_deferred),
    sum(OpKind::col_stats_partial, "col_stats_partial", OpClass::reduction, Locality::tile_local,
        "sum of x (·z, z = r·h (- r·mean), or z = h) over each tile of rows",
        {{kX, {"h", "M", "N", true}, {"stats", "M", "C", true}}}, {"partials", "N", "P"},
        col_partial_flops, tile_rows, reference::col_stats_partial),
    sum(OpKind::col_stats_finish, "col_stats_finish", OpClass::reduction, Locality::full_row,
        "y = sum of partials of each column", {{{"partials", "N", "P"}}}, {"y", "1", "N"},
        per_input<1>, input_columns, reference::col_stats_finish),
    element_wise(OpKind::cube, "cube", "y = x³", {{kX}}, kY, per_output<2>, reference::cube),
    element_wise(OpKind::scale, "scale", "y = scalar·x", {{kX}}, kY, per_output<1>,
                 reference::scale),
    element_wise(OpKind::expand_rows, "expand_rows", "y = scalar·r, r one value a row",
                 {{{"r", "M", "1"}}}, kY, per_output<1>, reference::expand_rows),
    attention(OpKind::head_sum, "head_sum", Locality::full_row,
              "y = sum over the query heads that share a key", {{{"x", "M", "Q"}}}, {"y", "M", "C"},
              head_sum_flops, heads_of_a_key, reference::head_sum),
    with_indices({OpKind::cross_entropy,
                  "cross_entropy",
                  OpClass::reduction,
                  Locality::full_row,
                  "loss = lse - x[target], lse = log of the sum of exp(x) over the row",
                  {{kX, kTargets}},
                  kLoss,
                  per_row<4, 3>,
                  input_columns,
                  reference::cross_entropy,
                  -1,
                  {"lse", "M", "1"}},
                 1),
    with_indices(element_wise(OpKind::cross_entropy_backward, "cross_entropy_backward",
                              "dx = dloss·(exp(x - lse) - (1 in the target's column))",
                              {{{"dloss", "M", "1"}, kX, kTargets, {"lse", "M", "1"}}}, kDx,
                              per_output<4>, reference::cross_entropy_backward),
                 2),
    with_indices(sum(OpKind::cross_entropy_partial, "cross_entropy_partial", OpClass::reduction,
                     Locality::tile_local,
                     "max x, sum of exp(x - max x) and the target's x over each tile of columns",
                     {{kX, kTargets}}, {"partials", "M", "P"}, per_input<4>, tile_columns,
                     reference::cross_entropy_partial),
                 1),
    with_saved(sum(OpKind::cross_entropy_finish, "cross_entropy_finish", OpClass::reduction,
                   Locality::full_row,
                   "lse = max + log of the sum of s·exp(m - max), loss = lse - sum of targets",
                   {{{"partials", "M", "P"}}}, kLoss, cross_entropy_finish_flops, input_columns,
                   reference::cross_entropy_finish),
               {"lse", "M", "1"}),
    with_indices(sum(OpKind::embedding_backward, "embedding_backward", OpClass::reduction,
                     Locality::full_column,
                     "dw[v] = sum of the rows dy[m] with ids[m] = v, or with m mod T = v",
                     {{kDy, {"ids", "M", "1", true}}}, {"dw", "V", "N"}, per_input<1>, input_rows,
                     reference::embedding_backward),
                 1),
});

}  // namespace

std::span<const OperatorInfo> backward_operators() { return kBackward; }

}  // namespace fuseline::table
