// Operators and tensors of a block: a directed acyclic graph. The algorithms run on Boost.Graph
// (graph.cpp).
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/units.h"
#include "model/config/config.h"

namespace fuseline {

struct TensorId {
  std::int32_t index = -1;
  friend constexpr auto operator<=>(TensorId, TensorId) = default;
};
struct OpId {
  std::int32_t index = -1;
  friend constexpr auto operator<=>(OpId, OpId) = default;
};

enum class Role : std::uint8_t { input, weight, table, cache, activation, output };

// A dense row-major matrix [rows, cols]. Vectors of length M are [M, 1], of length N are [1, N].
struct Tensor {
  std::string name{};    // "qkv", "w_qkv"
  std::string symbol{};  // shape in shape letters: "[M, 3D]"
  Role role = Role::activation;
  Dtype dtype = Dtype::bf16;
  std::int64_t rows = 0;
  std::int64_t cols = 0;

  [[nodiscard]] Bytes bytes() const { return checked_product<Bytes>(rows, cols, size_of(dtype)); }
};

// The part of a tensor that an operator touches: `rows` rows of columns [col_begin, col_begin +
// cols). A slice narrower than its tensor is strided in memory.
struct Operand {
  TensorId tensor;
  std::int64_t col_begin = 0;
  std::int64_t cols = 0;
  std::int64_t rows = 0;
  friend bool operator==(const Operand&, const Operand&) = default;
};

enum class OpKind : std::uint8_t {
  // GEMM y[M,N] = x[M,K] w[N,K]^T; OpAttributes give the layouts of the other two products
  gemm,
  // attention, batched over heads: scores = scale·Q K^T (causal), probabilities = softmax, context
  // = P V
  attention_scores,
  softmax,
  attention_context,
  // row operators
  rms_norm,
  layer_norm,
  // tile-local operators
  rope,
  swiglu,
  gelu,
  bias_add,
  residual_add,
  cache_append,
  // what the decompose rewrite makes of norms, RoPE and SwiGLU (one framework primitive each)
  cast,
  square,
  row_mean,
  add_scalar,
  rsqrt,
  mul_rows,
  mul_cols,
  mul_table,
  negate_half,
  concat_halves,
  add,
  silu,
  mul,
  // what the norm-splitting rewrite makes: per-tile partial statistics, their finisher, the
  // deferred scale
  row_stats_partial,
  row_stats_finish,
  row_scale,
  layer_norm_deferred,
  // the layers around the blocks
  embedding,
  // gradients of attention's steps: delta = rowsum(dY·Y) a head, dP = dY V^T, dS from P and dP, or
  // from P, dP and delta; P again from S and log-sum-exp; dQ = dS K, dK = dS^T Q, dV = P^T dY
  attention_backward_dot,
  attention_d_probs,
  softmax_backward,
  softmax_backward_delta,
  softmax_recompute,
  attention_d_q,
  attention_d_k,
  attention_d_v,
  // gradients of norms; norm_apply recomputes a norm from its saved statistics
  rms_norm_backward,
  layer_norm_backward,
  norm_weight_grad,
  norm_apply,
  // gradients of tile-local operators; sums over a tensor's readers and over rows (biases); slices
  // put side by side
  rope_backward,
  swiglu_backward,
  gelu_backward,
  silu_backward,
  grad_add,
  column_sum,
  concat,
  // a norm's gradient with row sums known before the dgrad GEMM; column sums by tiles of rows
  row_dot_partial,
  row_dot_finish,
  norm_backward_deferred,
  col_stats_partial,
  col_stats_finish,
  // what the decompose rewrites make of gradients; sum over the query heads that share a key
  cube,
  scale,
  expand_rows,
  head_sum,
  // the loss behind the LM head and its gradient; by tiles of columns and their finisher; the
  // gradient of a gathered table
  cross_entropy,
  cross_entropy_backward,
  cross_entropy_partial,
  cross_entropy_finish,
  embedding_backward,
};

// Numbers an operator needs besides its operands; unused ones keep their defaults.
struct OpAttributes {
  std::int64_t heads = 0;       // H
  std::int64_t kv_heads = 0;    // Hkv
  std::int64_t head_width = 0;  // d
  std::int64_t batch = 0;       // B
  std::int64_t q_tokens = 0;    // T
  std::int64_t kv_tokens = 0;   // S
  std::int64_t window = 0;      // sliding window, 0 = none
  bool causal = false;
  bool pairs_interleaved = false;  // pairs are adjacent columns (after the interleave rewrite)
  double eps = 0;
  bool halves_swapped = false;  // negate_half and concat_halves of a rotation's gradient: the first
                                // halves are negated and go behind the second
  double scalar = 0;            // scale of attention_scores, summand of add_scalar, factor of scale
                                // and expand_rows
  std::int64_t tile_cols = 128;  // row_stats_partial, cross_entropy_partial: columns that one
                                 // partial covers
  std::int64_t norm_width = 0;   // of the two finishers: D, the elements of a row of the norm
  std::int64_t tile_rows = 128;  // col_stats_partial: rows that one partial covers
  bool a_is_km = false;  // gemm: the first operand is stored [K, M]: the gradient of a weight
  bool b_is_kn = false;  // gemm: the second operand is stored [K, N]: the gradient of an activation
  friend bool operator==(const OpAttributes&, const OpAttributes&) = default;
};

enum class Pass : std::uint8_t { forward, backward };

struct Op {
  std::string name{};  // "qkv", "rope_q"
  OpKind kind = OpKind::gemm;
  std::vector<Operand> reads{};  // in the order of the operator table
  std::vector<Operand> writes{};
  OpAttributes attributes{};
  std::string site{};  // the block step it belongs to: norm1 qkv rope kvcache attention oproj
                       // residual1 ...; of the backward pass the same with "_bwd"
  Pass pass = Pass::forward;
};

class Graph {
 public:
  TensorId add_tensor(Tensor tensor);
  OpId add_op(Op op);  // asserts that its operands exist and lie inside their tensors

  [[nodiscard]] const std::vector<Tensor>& tensors() const { return tensors_; }
  [[nodiscard]] const std::vector<Op>& ops() const { return ops_; }
  [[nodiscard]] const Tensor& tensor(TensorId id) const;
  [[nodiscard]] const Op& op(OpId id) const;
  Op& op(OpId id);
  Tensor& tensor(TensorId id);
  [[nodiscard]] std::optional<TensorId> find_tensor(const std::string& name) const;
  [[nodiscard]] std::optional<OpId> find_op(const std::string& name) const;

  // Operators that write / read any part of the tensor, in insertion order.
  [[nodiscard]] std::vector<OpId> producers(TensorId id) const;
  [[nodiscard]] std::vector<OpId> consumers(TensorId id) const;

  // The whole tensor as an operand.
  [[nodiscard]] Operand whole(TensorId id) const;
  [[nodiscard]] Operand columns(TensorId id, std::int64_t begin, std::int64_t count) const;
  [[nodiscard]] Bytes bytes(const Operand& operand) const;

 private:
  std::vector<Tensor> tensors_;
  std::vector<Op> ops_;
};

// One producer-consumer pair of operators and the tensor between them (overlapping slices only).
struct Edge {
  OpId from;
  OpId to;
  TensorId tensor;
};

std::vector<Edge> edges(const Graph& graph);

// Operators in dependency order, stable (insertion order among the free ones). InternalError on a
// cycle.
std::vector<OpId> topological_order(const Graph& graph);

// The order of groups after contracting each into one node; empty when contraction makes a cycle.
std::optional<std::vector<std::size_t>> order_groups(const Graph& graph,
                                                     std::span<const std::vector<OpId>> groups);

const char* name_of(OpKind);
const char* name_of(Role);
const char* name_of(Pass);

}  // namespace fuseline
