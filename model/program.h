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

namespace fuseline {

using Value =
    std::int32_t;  // SSA name of a tile; value 0 is the result of a GEMM or attention mainloop

// Columns that one fp32 partial of a row reduction covers: the tile edge of the plan.
constexpr std::int64_t partial_tile = 128;

enum class Axis : std::uint8_t {
  rows,
  cols
};  // a vector along rows has length M; along cols, length N

enum class MapFn : std::uint8_t {
  add,
  sub,
  mul,
  scale_by_constant,
  add_constant,
  square,
  rsqrt,
  silu,
  sigmoid,
  gelu_tanh,
  negate,
  copy,
  exp,
  reciprocal,
  log,
  gelu_tanh_slope,  // the derivative of gelu_tanh
};
// Maps over adjacent column pairs of the accumulator: rope 2→2, swiglu 2→1, swiglu_backward 1→2.
enum class PairFn : std::uint8_t { rope, rope_inverse, swiglu, swiglu_backward };
// sum_and_squares (tile reductions): two numbers, the sum and the sum of squares (LayerNorm).
enum class ReduceFn : std::uint8_t { sum, sum_squares, max, mean, sum_and_squares };

struct LoadTile {
  Value out;
  Operand from;
};
struct LoadVector {
  Value out;
  Operand from;
  Axis axis;
};
// A [T, d] table addressed by (row mod T, column mod d): cos and sin of RoPE.
struct LoadTable {
  Value out;
  Operand from;
};
struct Map {
  Value out;
  MapFn fn;
  std::vector<Value> in;
  double constant = 0;
};
// Columns c and c + distance form a pair: 1 = adjacent, the only distance that a GEMM tile can
// promise. A stream or row kernel loads both columns itself, so rope may have distance d/2 there.
struct PairMap {
  std::vector<Value> out;
  PairFn fn;
  std::vector<Value> in;
  std::int64_t distance = 1;
};
// Whole-row reduction inside a row mainloop: the row is resident, the result is a vector along
// rows.
struct RowReduce {
  Value out;
  ReduceFn fn;
  Value in;
};
// Sum over all rows of each column, in a stream whose tiles hold whole columns: the thread block
// walks down its columns. The result is a vector along columns.
struct ColumnReduce {
  Value out;
  ReduceFn fn;
  Value in;
};
// Tile reduction: leaves as fp32 partials [M, ceil(N/tileN)] (rows) or [N, ceil(M/tileM)] (cols),
// tile edges partial_tile. Two adjacent columns a tile: sum_and_squares, and where `second` is a
// value, whose sums follow those of `in`.
struct TileReduce {
  ReduceFn fn;
  Axis axis;
  Value in;
  Operand partial;
  Value second = -1;
};
// Online log-sum-exp with target select. Of every partial_tile columns of a row three fp32 numbers,
// each in a third of the partial's columns: the maximum, the sum of exponentials above it, and the
// target's value, 0 where the target's column lies elsewhere.
struct OnlineLogSumExp {
  Value in;
  Operand targets;
  Operand partial;
};
// A vector is stored to a tile by repetition: expand.
struct StoreTile {
  Value in;
  Operand to;
  bool accumulate = false;
};
struct StoreVector {
  Value in;
  Operand to;
  Axis axis;
};
// Columns [begin, begin + cols) of a tile; what follows runs only in the tiles that hold them.
struct Columns {
  Value out;
  Value in;
  std::int64_t begin = 0;
  std::int64_t cols = 0;
};
// Scores of keys that the query may not see become -inf: causal and sliding-window masks of
// `shape`.
struct Mask {
  Value out;
  Value in;
  AttentionShape shape;
};
// One half of every group of `group` columns of `from` (x2 of RoPE's heads; the sums among the
// moments): half its columns move.
struct LoadHalves {
  Value out;
  Operand from;
  std::int64_t group = 0;
  bool upper = false;
};
// The inverse: in every group of columns, `lower` fills the lower half and `upper` the upper one.
struct ConcatHalves {
  Value out;
  Value lower;
  Value upper;
  std::int64_t group = 0;
};
// Sums over `count` adjacent groups of `width` columns: heads of `width` that share a key. The
// result has 1/count of the columns.
struct HeadSum {
  Value out;
  Value in;
  std::int64_t count = 1;
  std::int64_t width = 0;
};
// Row ids[m] of the table `from`, for every row m of the tile.
struct Gather {
  Value out;
  Operand ids;
  Operand from;
};
// The transpose of Gather, in a stream over the rows of a table: row v of the tile is the sum of
// the rows m of `from` with ids[m] = v, in the order of m; without ids, with m mod `period` = v.
// Every tile reads all ids.
struct GatherSum {
  Value out;
  std::optional<Operand> ids;
  Operand from;
  std::int64_t period = 0;
};
// A tile of `cols` columns with a 1 in column ids[m] of row m, 0 elsewhere.
struct OneHot {
  Value out;
  Operand ids;
  std::int64_t cols = 0;
};

using Primitive = std::variant<LoadTile, LoadVector, LoadTable, Map, PairMap, RowReduce, TileReduce,
                               OnlineLogSumExp, StoreTile, StoreVector, Columns, Mask, LoadHalves,
                               ConcatHalves, Gather, ColumnReduce, HeadSum, GatherSum, OneHot>;

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
};
// What attention's gradient reads besides Q, K and V: dY [B·T, H·d], the log-sum-exp of every row
// of scores and delta = rowsum(dY·Y) [B·H·T, 1] each. Value 0 is then dQ, and dK and dV [B·S,
// Hkv·d] are further results; per_query_head: [B·S, H·d], not yet summed over the heads that share
// a key. P = exp(scale·Q K^T - lse), dS = P·(dY V^T - delta): dQ = scale·dS K, dK = scale·dS^T Q,
// dV = P^T dY.
struct AttentionGradient {
  Operand dy, log_sum_exp, delta;
  Value dk = -1, dv = -1;
  bool per_query_head = false;
};
// value0 = softmax(scale·Q K^T + mask) V by online softmax over key tiles. A prologue value (>= 0)
// takes the place of the operand in memory: RoPE applied as Q and K are loaded. `log_sum_exp`
// (>= 0) is a second result, a vector [B·H·T].
struct AttentionMainloop {
  Operand q, k, v;
  AttentionShape shape;
  Value q_value = -1, k_value = -1, v_value = -1;
  Value log_sum_exp = -1;
  std::optional<AttentionGradient> gradient{};
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

using Mainloop = std::variant<GemmMainloop, AttentionMainloop, StreamMainloop, RowMainloop>;

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
