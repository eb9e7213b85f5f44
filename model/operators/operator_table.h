// The table of operators, and what follows for a graph from what each says of itself.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/units.h"
#include "model/graph.h"
#include "model/operators/attributes.h"
#include "model/operators/operator.h"

namespace fuseline {

// All operators by name: those of this folder, and those that were added.
std::span<const Operator* const> all_operators();
// The operator of that name, or null.
const Operator* find_operator(std::string_view name);
const Operator& operator_info(OpKind kind);

// Adds an operator from outside this folder to all_operators(), for as long as the program runs. A
// graph can hold it without. Asserts that its name is new.
struct AddedOperator {
  explicit AddedOperator(const Operator& description);
};

// Whether it is a product with M, N and K of its own: a weight's, or one of the gradient's.
bool is_gemm(const Op& op);
// Whether it is products for groups of rows: of rows of the result, or of rows that are summed.
bool is_ragged(const Op& op);
// Whether it normalises rows and can save their statistics.
bool is_norm(const Op& op);
// Whether the pairs of columns that it works on are adjacent.
bool has_adjacent_pairs(const Op& op);
// Whether the attention library launches it beside its kernel.
bool is_around_attention(const Op& op);
bool is_contraction(const Op& op);
// Whether it is the mainloop of a kernel by itself: a product or a scan, not a step of attention.
bool is_mainloop(const Op& op);
bool needs_whole_heads(const Op& op);
// Whether it is an activation of gate and up (its gradient is not).
bool is_gated(const Op& op);
bool needs_full_row(const Op& op);
bool needs_full_column(const Op& op);

// How many numbers 0, 1, ... the tensor's elements can be: those of token ids and targets. 0 for
// tensors that no operator reads as row or column numbers.
std::int64_t index_range(const Graph& graph, TensorId id);
// Whether an operator wants its numbers to be negative.
bool is_negative(const Graph& graph, TensorId id);

// Sizes of y[M,N] = a b^T summed over K, whatever the layouts of a and b. Asserts is_gemm.
struct GemmShape {
  std::int64_t M = 0, N = 0, K = 0;
  bool a_is_km = false;
  bool b_is_kn = false;
  std::vector<std::int64_t> groups{};  // rows that share one of b's matrices; empty: all of them
  std::vector<std::int64_t> depths{};  // parts of K that are summed apart; empty: all of it at once
  StoredWeight weight{};               // the number format of b
  StoredWeight activation{};           // and of a, whose scales are the last operand
};
// Those of a's rows, [M, groups of columns]; nothing where a is not in codes.
std::optional<Operand> activation_scale(const Op& op);
GemmShape gemm_shape(const Op& op);

// Multiplies, adds and each transcendental count one. Attention counts visible pairs only.
Flops flops(const Graph& graph, const Op& op);
Flops flops(const Graph& graph);

// Compulsory traffic of the operator alone: each distinct element of its operands once.
Bytes bytes_read(const Graph& graph, const Op& op);
Bytes bytes_written(const Graph& graph, const Op& op);

// Bytes of the union of the operands: overlapping slices of a tensor count once. Operands of one
// tensor are taken to nest in rows (the narrower one's rows lie inside the taller one's).
Bytes distinct_bytes(const Graph& graph, std::span<const Operand> operands);

// What the whole graph takes and gives: inputs, weights, tables and the part of the caches that the
// graph does not itself write, once; outputs and appended cache rows, once. In a row of equal
// blocks the neighbours may leave a part of it in the L2; the rest is each block's own and crosses
// HBM.
struct CompulsoryBytes {
  Bytes read;
  Bytes written;
  Bytes shared_read;     // of read: inputs and tables
  Bytes shared_written;  // of written: outputs that are no weight's gradient
  Bytes foldable;  // of read: weights of one row, which may be folded into a matrix beforehand
};
CompulsoryBytes compulsory_bytes(const Graph& graph);

// Whether the tensor is an output and the gradient of a weight. Each block has its own, as it has
// its own weights.
bool is_weight_gradient(const Graph& graph, TensorId tensor);

// Query-key pairs that one head of one sequence computes: query t of T sees the keys up to its own
// position S-T+t, of which the last `window`. Without a mask T·S, window respected.
std::int64_t visible_pairs(const AttentionShape& attributes);

// Half a step between codes that share a scale, relative to the numbers: e4m3 keeps that of each
// number; whole numbers are steps of the largest of a row, and half of one is a sixteenth of
// numbers that are a sixteenth of it.
double row_code_roundoff(Dtype codes);

// Bound on the relative L2 error of the written tensor when sums accumulate in fp32 and the result
// is rounded to its storage type: u_store + (2·sqrt(L) + 8)·u_fp32 with L = sum_length and u the
// unit roundoff (2^-8 bf16, 2^-11 fp16, 2^-24 fp32). Inputs are taken as exact; a product whose
// weight is stored in few bits rounds what a code is worth to the type of its first operand, and
// may differ by that type's u more.
double tolerance(const Graph& graph, const Op& op);

// Problems of the operator's operands against the table, in words; empty = as the table says.
std::vector<std::string> check_operands(const Graph& graph, const Op& op);

const char* name_of(OpClass);
const char* name_of(Locality);

}  // namespace fuseline
