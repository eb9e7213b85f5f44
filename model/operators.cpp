#include "model/operators.h"

#include <algorithm>
#include <cstddef>

#include "base/error.h"
#include "model/operator_counts.h"
#include "model/reference_ops.h"

namespace fuseline {

namespace {

using namespace table;

Flops gemm_flops(const Graph&, const Op& op) {
  const GemmShape shape = gemm_shape(op);
  return checked_product<Flops>(2, shape.M, shape.N, shape.K);
}

std::int64_t gemm_length(const Graph&, const Op& op) { return gemm_shape(op).K; }

// Maximum, subtract, exponential, sum, divide; the log-sum-exp takes a logarithm and a sum a row.
Flops softmax_flops(const Graph& graph, const Op& op) {
  const Flops log_sum_exp(op.writes.size() > 1 ? 2 * op.writes[0].rows : 0);
  return per_visible_pair<5>(graph, op) + log_sum_exp;
}

// Σh² takes 2 an element, Σh one more.
Flops partial_flops(const Graph& graph, const Op& op) {
  const bool two = op.writes[0].cols > ceil_div(op.reads[0].cols, op.attributes.tile_cols);
  return two ? per_input<3>(graph, op) : per_input<2>(graph, op);
}

// Sum of the partials; then mean, +ε, rsqrt, or mean, mean square, μ², difference, +ε, rsqrt, r·μ.
Flops finish_flops(const Graph& graph, const Op& op) {
  return op.writes[0].cols == 2 ? per_row<1, 7>(graph, op) : per_row<1, 3>(graph, op);
}

// Token row, plus one add an element when there is a position row.
Flops embedding_flops(const Graph& graph, const Op& op) {
  return op.reads.size() > 2 ? per_output<1>(graph, op) : Flops(0);
}

// In the order of OpKind.
constexpr auto kForward = std::to_array<OperatorInfo>({
    {OpKind::gemm,
     "gemm",
     OpClass::gemm,
     Locality::contraction,
     "y = x w^T",
     {{{"x", "M", "K"}, {"w", "N", "K"}}},
     kY,
     gemm_flops,
     gemm_length,
     reference::gemm},
    {OpKind::attention_scores,
     "attention_scores",
     OpClass::attention,
     Locality::contraction,
     "s = scale·q k^T for each head, visible pairs",
     {{{"q", "M", "Q"}, {"k", "R", "C"}}},
     {"s", "P", "S"},
     attention_flops,
     head_columns,
     reference::attention_scores},
    {OpKind::softmax,
     "softmax",
     OpClass::attention,
     Locality::full_row,
     "p = exp(s - max s) / sum exp(s - max s), visible columns",
     {{{"s", "P", "S"}}},
     {"p", "P", "S"},
     softmax_flops,
     input_columns,
     reference::softmax,
     -1,
     {"lse", "P", "1"}},
    {OpKind::attention_context,
     "attention_context",
     OpClass::attention,
     Locality::contraction,
     "y = p v for each head",
     {{{"p", "P", "S"}, {"v", "R", "C"}}},
     {"y", "M", "Q"},
     attention_flops,
     input_columns,
     reference::attention_context},
    {OpKind::rms_norm,
     "rms_norm",
     OpClass::norm,
     Locality::full_row,
     "y = x · rsqrt(mean x² + eps) · w",
     {{kX, {"w", "1", "N"}}},
     kY,
     per_row<4, 3>,
     input_columns,
     reference::rms_norm,
     -1,
     kStats},
    {OpKind::layer_norm,
     "layer_norm",
     OpClass::norm,
     Locality::full_row,
     "y = (x - mean x) · rsqrt(var x + eps) · w + b",
     {{kX, {"w", "1", "N"}, {"b", "1", "N"}}},
     kY,
     per_row<7, 4>,
     input_columns,
     reference::layer_norm,
     -1,
     kStats},
    element_wise(OpKind::rope, "rope", "(a, b) -> (a·cos - b·sin, b·cos + a·sin) for each pair",
                 {{kX, {"cos", "T", "d"}, {"sin", "T", "d"}}}, kY, per_output<3>, reference::rope,
                 Locality::pair_local),
    element_wise(OpKind::swiglu, "swiglu", "y = g · sigmoid(g) · u for each pair (g, u)",
                 {{{"gu", "M", "2N"}}}, kY, per_output<5>, reference::swiglu, Locality::pair_local),
    element_wise(OpKind::gelu, "gelu", "y = x/2 · (1 + tanh(sqrt(2/pi)·(x + 0.044715 x³)))", {{kX}},
                 kY, per_output<9>, reference::gelu),
    element_wise(OpKind::bias_add, "bias_add", "y = x + b", {{kX, {"b", "1", "N"}}}, kY,
                 per_output<1>, reference::add),
    element_wise(OpKind::residual_add, "residual_add", "y = x + z", {{kX, {"z", "M", "N"}}}, kY,
                 per_output<1>, reference::add),
    element_wise(OpKind::cache_append, "cache_append", "cache[last T rows of each sequence] = x",
                 {{kX}}, {"cache", "M", "N"}, per_output<0>, reference::cache_append),
    element_wise(OpKind::cast, "cast", "y = x in another type", {{kX}}, kY, per_output<0>,
                 reference::copy),
    element_wise(OpKind::square, "square", "y = x²", {{kX}}, kY, per_output<1>, reference::square),
    {OpKind::row_mean,
     "row_mean",
     OpClass::reduction,
     Locality::full_row,
     "y = mean of each row",
     {{kX}},
     {"y", "M", "1"},
     per_row<1, 1>,
     input_columns,
     reference::row_mean},
    element_wise(OpKind::add_scalar, "add_scalar", "y = x + scalar", {{kX}}, kY, per_output<1>,
                 reference::add_scalar),
    element_wise(OpKind::rsqrt, "rsqrt", "y = 1 / sqrt(x)", {{kX}}, kY, per_output<1>,
                 reference::rsqrt),
    element_wise(OpKind::mul_rows, "mul_rows", "y = x · r, r one value a row",
                 {{kX, {"r", "M", "1"}}}, kY, per_output<1>, reference::multiply),
    element_wise(OpKind::mul_cols, "mul_cols", "y = x · w, w one value a column",
                 {{kX, {"w", "1", "N"}}}, kY, per_output<1>, reference::multiply),
    element_wise(OpKind::mul_table, "mul_table", "y = x · table[row mod T, column mod d]",
                 {{kX, {"table", "T", "d"}}}, kY, per_output<1>, reference::multiply),
    element_wise(OpKind::negate_half, "negate_half",
                 "y = -(second half of each head), or the first", {{{"x", "M", "2N"}}}, kY,
                 per_output<1>, reference::negate_half, Locality::pair_local, 0),
    element_wise(OpKind::concat_halves, "concat_halves",
                 "y = (n, first half of x) of each head, or (second half, n)",
                 {{{"n", "M", "N"}, {"x", "M", "2N"}}}, {"y", "M", "2N"}, per_output<0>,
                 reference::concat_halves, Locality::pair_local, 1),
    element_wise(OpKind::add, "add", "y = x + z", {{kX, {"z", "M", "N"}}}, kY, per_output<1>,
                 reference::add),
    element_wise(OpKind::silu, "silu", "y = x · sigmoid(x)", {{kX}}, kY, per_output<4>,
                 reference::silu),
    element_wise(OpKind::mul, "mul", "y = x · z", {{kX, {"z", "M", "N"}}}, kY, per_output<1>,
                 reference::multiply),
    {OpKind::row_stats_partial,
     "row_stats_partial",
     OpClass::reduction,
     Locality::tile_local,
     "sum of x² (and of x) over each tile of columns",
     {{kX}},
     {"partials", "M", "P"},
     partial_flops,
     tile_columns,
     reference::row_stats_partial},
    {OpKind::row_stats_finish,
     "row_stats_finish",
     OpClass::reduction,
     Locality::full_row,
     "r = rsqrt(sum of partials / D + eps), or (r, r·mean)",
     {{{"partials", "M", "P"}}},
     {"stats", "M", "C"},
     finish_flops,
     input_columns,
     reference::row_stats_finish},
    element_wise(OpKind::row_scale, "row_scale", "y = x · r, r one value a row",
                 {{kX, {"r", "M", "1"}}}, kY, per_output<1>, reference::multiply),
    element_wise(OpKind::layer_norm_deferred, "layer_norm_deferred",
                 "y = r·x - (r·mean)·wg + wb, wg = w gamma, wb = w beta (+ bias)",
                 {{kX, {"stats", "M", "2"}, {"wg", "1", "N"}, {"wb", "1", "N"}}}, kY, per_output<4>,
                 reference::layer_norm_deferred),
    element_wise(OpKind::embedding, "embedding", "y = w[ids] (+ positions)",
                 {{{"ids", "M", "1"}, {"w", "V", "N"}, {"positions", "T", "N", true}}}, kY,
                 embedding_flops, reference::embedding, Locality::tile_local, -1, 0),
});

}  // namespace

std::span<const OperatorInfo> operators() {
  static const std::vector<OperatorInfo> all = [] {
    std::vector<OperatorInfo> rows(kForward.begin(), kForward.end());
    rows.insert(rows.end(), backward_operators().begin(), backward_operators().end());
    return rows;
  }();
  return all;
}

const OperatorInfo& operator_info(OpKind kind) {
  const std::size_t index = static_cast<std::size_t>(kind);
  FUSELINE_ASSERT(index < operators().size(), "unknown operator kind");
  FUSELINE_ASSERT(operators()[index].kind == kind, "the operator table is out of order");
  return operators()[index];
}

Flops flops(const Graph& graph, const Op& op) { return operator_info(op.kind).flops(graph, op); }

Flops flops(const Graph& graph) {
  Flops total;
  for (const Op& op : graph.ops()) total += flops(graph, op);
  return total;
}

std::int64_t visible_pairs(const OpAttributes& a) {
  const std::int64_t T = a.q_tokens;
  const std::int64_t S = a.kv_tokens;
  const std::int64_t window = a.window > 0 ? std::min(a.window, S) : S;
  if (!a.causal) return checked_product<Flops>(T, window).value();
  // Query t sees min(S - T + t + 1, window) keys: `growing` queries see fewer than the window.
  const std::int64_t growing = std::clamp<std::int64_t>(window - (S - T), 0, T);
  // growing·(growing+1) is even, and so is each product below before it is halved.
  const Flops triangle = checked_product<Flops>(growing, growing + 1);
  return triangle.value() / 2 + checked_product<Flops>(growing, S - T).value() +
         checked_product<Flops>(T - growing, window).value();
}

const char* name_of(OpKind kind) { return operator_info(kind).name; }

const char* name_of(OpClass c) {
  switch (c) {
    case OpClass::gemm:
      return "gemm";
    case OpClass::attention:
      return "attention";
    case OpClass::norm:
      return "norm";
    case OpClass::pointwise:
      return "pointwise";
    case OpClass::reduction:
      return "reduction";
  }
  FUSELINE_ASSERT(false, "unknown class");
}

const char* name_of(Locality l) {
  switch (l) {
    case Locality::tile_local:
      return "tile-local";
    case Locality::pair_local:
      return "pair-local";
    case Locality::full_row:
      return "needs a full row";
    case Locality::contraction:
      return "contraction";
    case Locality::full_column:
      return "needs a full column";
  }
  FUSELINE_ASSERT(false, "unknown locality");
}

}  // namespace fuseline
