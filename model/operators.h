// The operator table: everything that is known of an operator kind, said once. Simulator, executor,
// checks and documentation read it.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/units.h"
#include "model/graph.h"

namespace fuseline {

class TensorValues;

enum class OpClass : std::uint8_t { gemm, attention, norm, pointwise, reduction };

// What one output tile needs of the inputs.
//   tile_local   the same tile of each operand, and vectors or tables along its rows and columns
//   pair_local   the same tile, in whole pairs of columns
//   full_row     all columns of its rows
//   contraction  panels of two operands, summed over a shared dimension
//   full_column  all rows of its columns
enum class Locality : std::uint8_t { tile_local, pair_local, full_row, contraction, full_column };

// Name and shape of one operand. A shape letter stands for one size in all operands of the
// operator; "2N" is twice N, "1" is one. Letters: M rows, N columns, K contraction, others free.
struct OperandSpec {
  const char* name = nullptr;
  const char* rows = "";
  const char* cols = "";
  bool optional = false;
};

struct OperatorInfo {
  OpKind kind = OpKind::gemm;
  const char* name = "";
  OpClass op_class = OpClass::pointwise;
  Locality locality = Locality::tile_local;
  const char* formula = "";
  std::array<OperandSpec, 6> reads{};  // names after the last one are null
  OperandSpec write{};
  Flops (*flops)(const Graph&, const Op&) = nullptr;
  // Terms of the longest sum that makes one output element; 1 for element-wise operators.
  std::int64_t (*sum_length)(const Graph&, const Op&) = nullptr;
  // Reads `in`, writes the operator's own slices of `out`, in fp64. `in` and `out` may be one
  // object.
  void (*reference)(const Graph&, const Op&, const TensorValues& in, TensorValues& out) = nullptr;
  // Index of the operand of which only one half of each head's columns is read; -1 = none.
  int half_read = -1;
  // A second result that the operator may also write, for the backward pass; null name = none.
  OperandSpec also_writes{};
  // Index of the operand that holds row or column numbers, which have no gradient; -1 = none.
  int index_read = -1;
};

// All kinds, in the order of OpKind.
std::span<const OperatorInfo> operators();
const OperatorInfo& operator_info(OpKind kind);

// How many numbers 0, 1, ... the tensor's elements can be: those of token ids and targets. 0 for
// tensors that no operator reads as row or column numbers.
std::int64_t index_range(const Graph& graph, TensorId id);

// Sizes of y[M,N] = a b^T summed over K, whatever the layouts of a and b. Asserts kind gemm.
struct GemmShape {
  std::int64_t M = 0, N = 0, K = 0;
  bool a_is_km = false;
  bool b_is_kn = false;
};
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

// Whether the tensor is the output "d" + the name of a weight. Each block has its own, as it has
// its own weights.
bool is_weight_gradient(const Graph& graph, TensorId tensor);

// Query-key pairs that one head of one sequence computes: query t of T sees the keys up to its own
// position S-T+t, of which the last `window`. Without a mask T·S, window respected.
std::int64_t visible_pairs(const OpAttributes& attributes);

// Bound on the relative L2 error of the written tensor when sums accumulate in fp32 and the result
// is rounded to its storage type: u_store + (2·sqrt(L) + 8)·u_fp32 with L = sum_length and u the
// unit roundoff (2^-8 bf16, 2^-11 fp16, 2^-24 fp32). Inputs are taken as exact.
double tolerance(const Graph& graph, const Op& op);

// Problems of the operator's operands against the table, in words; empty = as the table says.
std::vector<std::string> check_operands(const Graph& graph, const Op& op);

const char* name_of(OpClass);
const char* name_of(Locality);

}  // namespace fuseline
