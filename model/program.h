// The IR of GEMM-epilogue programs: one mainloop, then primitives that run while the tile is on
// chip. Five primitive classes (arXiv 2605.19269): maps, vector load/store, tile load/store, tile
// reductions, stateful transforms. Every kernel of a plan has such a program; kernels without a
// GEMM have a stream or row mainloop. Values are fp32 tiles [tileM, tileN] (or vectors broadcast to
// them) until stored.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "model/graph.h"
#include "model/operators/attributes.h"
#include "model/primitives/primitives.h"

namespace fuseline {

// value0[M,N] = a[M,K] b[N,K]^T, fp32 accumulation. `interleaved`: b's rows are permuted once so
// that pairs are adjacent columns. batch > 1: independent GEMMs over heads (attention of
// `unfused`).
struct GemmMainloop {
  Operand a;
  Operand b;
  std::int64_t M = 0, N = 0, K = 0;
  std::int64_t batch = 1;
  bool interleaved = false;
  bool a_is_km = false;  // a is stored [K, M]: the gradient of a weight
  bool b_is_kn = false;  // b is stored [K, N]: the gradient of an activation, probabilities times V
  // batch > 1: so many consecutive products of the batch add up in one result: gradients of keys
  // and values that query heads share.
  std::int64_t summed = 1;
  // Experts: groups of rows of a and of the result, each of which has a matrix of its own. Group g
  // has groups[g] rows, and its matrix is rows [g·N, (g + 1)·N) of b. The groups add up to M, and
  // batch is 1. Empty: one group.
  std::vector<std::int64_t> groups{};
  // Gradients of experts' weights: product g of the batch sums only depths[g] rows of a and b.
  // These rows follow those of product g - 1. Both operands are stored with k first, and the depths
  // add up to K. A depth of 0 gives zeros, for an expert without rows. Empty: every product sums
  // all of K.
  std::vector<std::int64_t> depths{};
  // The number format of b, and its tensors of scales in the order of weight.beside(). The mainloop
  // dequantises b on its way to the tensor cores. With groups, their scales follow each other.
  StoredWeight weight{};
  std::vector<Operand> beside_b{};
  // The number format of a, where b has one, and the scales of a's rows, [M, groups of columns]:
  // tensor cores multiply the codes of both, and sums over the columns that share scales are
  // multiplied by these in fp32.
  StoredWeight activation{};
  std::optional<Operand> a_scale{};
};
// What attention's gradient reads besides Q, K and V: dY [B·T, H·d], the log-sum-exp of every row
// of scores and delta = rowsum(dY·Y) [B·H·T, 1] each. Value 0 is then dQ, and dK and dV [B·S,
// Hkv·d] are further results; per_query_head: [B·S, H·d], not yet summed over the heads that share
// a key. P = exp(cap(scale·Q K^T) - lse), dS = P·(dY V^T - delta): dQ = scale·dS K, dK = scale·dS^T
// Q, dV = P^T dY.
struct AttentionGradient {
  Operand dy, log_sum_exp, delta;
  Value dk = -1, dv = -1;
  bool per_query_head = false;
};
// value0 = softmax(cap(scale·Q K^T) + bias + mask) V by online softmax over key tiles. A prologue
// value (>= 0) takes the place of the operand in memory: RoPE applied as Q and K are loaded.
// `log_sum_exp`
// (>= 0) is a second result, a vector [B·H·T].
struct AttentionMainloop {
  Operand q, k, v;
  AttentionShape shape;
  Value q_value = -1, k_value = -1, v_value = -1;
  Value log_sum_exp = -1;
  std::optional<AttentionGradient> gradient{};
  std::optional<Operand> bias{};  // [H·T, S], the same for every sequence
  // Where shape.cache has scales: those of each key's heads, [B·S, Hkv].
  std::optional<Operand> k_scale{}, v_scale{};
};
// What a scan's gradient reads besides its operands, and what it stores besides dx, which is value
// 0. A thread block walks the tokens of a head backwards, piece by piece; a state is kept between
// two pieces. Heads that share k and q add to the gradients of these in memory, in fp32. All
// sequences add to the gradients of the rates.
struct ScanGradient {
  Operand dy;                        // [B·T, H·P]
  std::optional<Operand> states{};   // after each piece of a sequence but the last one; without
                                     // them a sequence is one piece
  Operand d_decay;                   // of the decay or the step, [B·T, H]
  Operand dk, dq;                    // [B·T, G·N]
  std::optional<Operand> d_rates{};  // as the rates
};
// A mainloop with carried state. One thread block has one head of one sequence and walks its tokens
// in chunks of shape.chunk rows, in order; the state S in R^{P x N} stays on chip in fp32. With
// a_t = exp(log_decay_t), c_t = log_decay of the chunk's tokens up to t, summed, and L(t, s) =
// exp(c_t - c_s) where s <= t, else 0, a chunk computes
//   value 0 = Y = (L ∘ q k^T) x + diag(exp(c)) q S^T     [tokens of the chunk, P]
//   S <- exp(c_last)·S + x^T diag(exp(c_last - c)) k
// which is S_t = a_t·S_{t-1} + x_t k_t^T, y_t = S_t q_t, token by token. The body runs on tiles of
// one chunk's rows and one head's columns.
// With `rates` log_decay is a step dt: the log decay is dt·rate, and x is multiplied by dt. Rates
// [H, 1] are one for each head; rates [H, N] one for each column of its state as well: then there
// are no products of chunks, and tokens go through a parallel prefix of the recurrence instead.
struct ScanMainloop {
  Operand x;          // [B·T, H·P]
  Operand log_decay;  // [B·T, H]
  Operand k, q;       // [B·T, G·N]
  ScanShape shape;
  std::optional<Operand> rates{};  // [H, 1] or [H, N]
  std::optional<Operand> state{};  // [B·H·P, N], before the first token; without it zeros
  // The state after the last token, or after each of the C pieces in which the gradient walks:
  // [B·C·H·P, N]. The mainloop stores it.
  std::optional<Operand> state_after{};
  std::optional<ScanGradient> gradient{};

  [[nodiscard]] bool keeps_states() const {
    return state_after && state_after->rows > shape.batch * shape.heads * shape.head_width;
  }
  [[nodiscard]] bool has_rates_of_columns() const { return rates && rates->cols > 1; }
};
// Tiles of an [rows, cols] index space; no tile needs another. Tiles of narrower operands (parts of
// a concatenation) take the columns that they have: column c of each belongs to tile c / tileN.
struct StreamMainloop {
  std::int64_t rows = 0, cols = 0;
};
// Whole rows of [rows, cols] are resident: RowReduce is legal. heads > 1: row (b·heads + h)·tokens
// + t of the space is columns [h·cols, (h + 1)·cols) of row b·tokens + t of a tile's operand.
struct RowMainloop {
  std::int64_t rows = 0, cols = 0;
  std::int64_t heads = 1;
  std::int64_t tokens = 0;
};

using Mainloop =
    std::variant<GemmMainloop, AttentionMainloop, StreamMainloop, RowMainloop, ScanMainloop>;

struct Program {
  std::string name;
  Mainloop mainloop;
  std::vector<Primitive> body{};
  std::vector<Primitive> prologue{};  // attention only: what happens to Q, K, V as they are loaded
  std::vector<std::string> names{};   // of values, for the printer; may be short or empty
};

// Every operand the program loads from or stores to memory (mainloop operands included), in order.
std::vector<Operand> loads(const Program& program);
std::vector<Operand> stores(const Program& program);

// Problems found by the checker, in words; empty = legal. Checked: operand shapes against the
// mainloop's index space, tile-locality (RowReduce needs resident rows), pair maps on adjacent
// pairs of even width, every partial has one finisher in `plan order` (checked by check_plan),
// values defined before use, one mainloop, tensors stored once.
std::vector<std::string> check_program(const Graph& graph, const Program& program);

// The program as text that a person reads as code.
std::string print_program(const Graph& graph, const Program& program);

}  // namespace fuseline
