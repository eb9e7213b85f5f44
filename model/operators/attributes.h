// The attributes that operators of this folder have. An operator from elsewhere brings its own
// struct.
#pragma once

#include <cstdint>
#include <vector>

#include "model/cache_formats/stored_cache.h"
#include "model/column_part.h"
#include "model/formats/stored_weight.h"

namespace fuseline {

// Attention's steps, those of its gradient, and sums over heads. The mask is data: the position of
// query t is S - T + t. It sees the keys up to its own position where the mask is causal, and those
// of a prefix; of these a window leaves its last ones. Neither causal nor a window: all keys.
struct AttentionShape {
  std::int64_t heads = 0;       // H
  std::int64_t kv_heads = 0;    // Hkv
  std::int64_t head_width = 0;  // d, of Q and K
  std::int64_t batch = 0;       // B
  std::int64_t q_tokens = 0;    // T
  std::int64_t kv_tokens = 0;   // S, which does not depend on T
  std::int64_t window = 0;      // keys up to its own that a query sees, 0 = all of them
  bool causal = false;
  double scale = 0;              // of the scores
  std::int64_t prefix = 0;       // causal: the first keys, which all queries see
  std::int64_t value_width = 0;  // of a head of V and of the result, 0 = d
  double softcap = 0;            // c > 0: scores s become c·tanh(s / c)
  // Of scores and context: the number format of K and V. Where it has scales, one for each head of
  // each key, they are the last operand, [B·S, Hkv].
  StoredCache cache{};

  [[nodiscard]] std::int64_t v_width() const { return value_width > 0 ? value_width : head_width; }
  friend bool operator==(const AttentionShape&, const AttentionShape&) = default;
};

// join_heads, head_linear, dequantise_cache: heads that lie side by side.
struct HeadCount {
  std::int64_t heads = 1;
};

// state_scan: which rows are sequences, which columns are heads, and how many tokens a thread block
// takes at a time. Heads [g·H/G, (g + 1)·H/G) share group g of k and q.
struct ScanShape {
  std::int64_t heads = 0;        // H
  std::int64_t groups = 0;       // G, divides H
  std::int64_t head_width = 0;   // P, columns of x in a head: rows of its state
  std::int64_t state_width = 0;  // N, columns of k and q in a group: columns of the state
  std::int64_t batch = 0;        // B
  std::int64_t tokens = 0;       // T, of each sequence
  std::int64_t chunk = 64;       // Q, tokens taken together; 1 = step by step

  // The gradient begins with states that the forward pass keeps: one behind every chunk, or, where
  // every column of a state has a rate of its own, behind the chunks of about 2048 tokens, as the
  // library of Mamba keeps them.
  [[nodiscard]] std::int64_t kept_tokens(bool rates_of_columns) const {
    constexpr std::int64_t kOfLibrary = 2048;
    return rates_of_columns && chunk < kOfLibrary ? kOfLibrary / chunk * chunk : chunk;
  }
  [[nodiscard]] std::int64_t kept_states(bool rates_of_columns) const {
    const std::int64_t each = kept_tokens(rates_of_columns);
    return (tokens + each - 1) / each;
  }
  friend bool operator==(const ScanShape&, const ScanShape&) = default;
};

// conv_rows: row b·tokens + t of its operand is token t of sequence b.
struct ConvolutionShape {
  std::int64_t batch = 0;   // B
  std::int64_t tokens = 0;  // T
  std::int64_t taps = 0;    // K, the token itself and the K - 1 before it
  friend bool operator==(const ConvolutionShape&, const ConvolutionShape&) = default;
};

// all_reduce: the GPUs whose partial results it sums.
struct Devices {
  std::int64_t count = 0;
};

// gemm: the layouts of its operands, and their number formats. The scales of the first operand are
// the last that it reads.
struct GemmLayout {
  bool a_is_km = false;  // the first operand is stored [K, M]: the gradient of a weight
  bool b_is_kn = false;  // the second operand is stored [K, N]: the gradient of an activation
  StoredWeight weight{};
  StoredWeight activation{};
  // The product that makes the first operand may be in the same kernel (model/chain.h).
  bool chained = false;
};

// quantise_rows, quantise_groups: what the rows become.
struct RowCodes {
  StoredWeight activation{};
};

// Operators on pairs of columns: rope, swiglu and their gradients.
struct Pairs {
  std::int64_t head_width = 0;  // rope: pairs lie in heads of this width
  // Pairs are adjacent columns: by nature, as in GPT-J and GLM, or after the interleave rewrite.
  // Otherwise the second halves of what is rotated (or of all columns) are their partners.
  bool interleaved = false;
  std::int64_t rotated = 0;  // rope: the first columns of each head that turn, 0 = all of them

  [[nodiscard]] std::int64_t turned() const { return rotated > 0 ? rotated : head_width; }
  friend bool operator==(const Pairs&, const Pairs&) = default;
};

// negate_half and concat_halves.
struct Halves {
  std::int64_t head_width = 0;
  bool swapped = false;  // of a rotation's gradient: the first halves are negated and go behind
                         // the second
};

// mul_table_part, negate_part and concat_parts: the columns of each head that they read.
struct HeadPart {
  ColumnPart part{};
  // concat_parts: groups of so many columns of its result are made of both operands, and what is
  // read as parts goes behind the other.
  std::int64_t joined = 0;
  bool behind = false;
};

// Norms and their gradients.
struct NormEps {
  double eps = 0;
};

// head_norm and its gradients: each head of a row is a row of the norm.
struct HeadNorm {
  std::int64_t head_width = 0;  // d
  double eps = 0;
};

// normalise and its gradient.
struct Normalise {
  double eps = 0;
  bool centred = true;  // the mean is taken off first, as LayerNorm does and RMSNorm does not
};

// row_stats_finish, row_dot_finish.
struct RowStatistics {
  std::int64_t norm_width = 0;  // D, the elements of a row of the norm
  double eps = 0;
  // The partials may be summed in the epilogue that wants the statistics, by every tile of the
  // rows.
  bool in_epilogue = false;
};

// Operators that leave partial sums: what one of them covers.
struct PartialTile {
  std::int64_t rows = 128;
  std::int64_t cols = 128;
};

// add_scalar: the summand; scale, expand_rows: the factor.
struct Scalar {
  double value = 0;
};

// cache_append: new rows of each sequence. modulate, gate_add: rows that share a row of the
// vectors.
struct Sequences {
  std::int64_t batch = 0;
  std::int64_t tokens = 0;
};

// cache_append_scaled: heads that have a scale each.
struct ScaledHeads {
  std::int64_t heads = 1;
  StoredCache cache{};
};

// embedding and its gradient: positions of a sequence.
struct Positions {
  std::int64_t tokens = 0;  // T, the new ones
};

// Rows in groups of different lengths that lie behind each other, each with a matrix of its own:
// the tokens of every expert. Groups without rows are left out.
struct RaggedRows {
  std::vector<std::int64_t> groups{};
  bool assumed = false;       // what routing is expected to give; otherwise what it gave
  bool b_is_kn = false;       // the matrices are stored [K, N]: the gradient of the rows
  StoredWeight weight{};      // as in GemmLayout
  StoredWeight activation{};  // as in GemmLayout
  friend bool operator==(const RaggedRows&, const RaggedRows&) = default;
};

// grouped_weight_grad: rows in groups that lie behind each other, each of which is summed into a
// matrix of its own. A group may be empty, its matrix is then zeros.
struct RaggedSums {
  std::vector<std::int64_t> groups{};
  friend bool operator==(const RaggedSums&, const RaggedSums&) = default;
};

// How gates come from scores: a softmax of the chosen experts' scores (Mixtral, Qwen3), those of a
// softmax of all (DeepSeek-V2), or sigmoids divided by their sum (DeepSeek-V3).
enum class GateWeights : std::uint8_t { softmax, softmax_of_all, sigmoid };

// choose_experts: so many experts for every row. `loads`: how many rows each of the first experts
// gets, where a plan has to know it before there are scores; which rows is then a fixed pattern.
// Without: the largest scores decide.
struct ExpertChoice {
  std::int64_t count = 1;  // k
  GateWeights weights = GateWeights::softmax;
  double factor = 1;  // of all gates
  RaggedRows loads{};
  friend bool operator==(const ExpertChoice&, const ExpertChoice&) = default;
};

// Rows that have several places each behind each other, as a token has one with each of its
// experts: place m·each + j is one of row m.
struct Places {
  std::int64_t each = 1;
};

// concat_rows: the parts alternate within each of so many sequences.
struct JointSequences {
  std::int64_t count = 1;
};

// cast: whether the attention library launches it, behind its gradient's kernel.
struct Conversion {
  bool of_attention = false;
};

// add: whether its operands lie in different orders in memory.
struct TwoLayouts {
  bool differ = false;
};

}  // namespace fuseline
