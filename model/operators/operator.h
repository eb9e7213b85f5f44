// What an operator is: everything that is known of it, said once in its own file beside this one.
// Simulator, executor, checks, rewrites and documentation ask this description; nothing else lists
// operators.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include "base/described.h"
#include "base/units.h"
#include "model/framework_launch.h"
#include "model/graph.h"
#include "model/operators/attributes.h"
#include "model/program.h"

namespace fuseline {

class Adjoint;
class Emitter;
class OperatorCall;
class TensorValues;
enum class Implementation : std::uint8_t;

// scan: carries a state along the tokens; conv: a window of rows; collective: between GPUs.
enum class OpClass : std::uint8_t {
  gemm,
  attention,
  norm,
  pointwise,
  reduction,
  scan,
  conv,
  collective,
};

// What one output tile needs of the inputs.
//   tile_local   the same tile of each operand, and vectors or tables along its rows and columns
//   pair_local   the same tile, in whole pairs of columns
//   head_local   the same tile, in whole heads
//   full_row     all columns of its rows
//   contraction  panels of two operands, summed over a shared dimension
//   full_column  all rows of its columns
//   row_halo     the same tile and some rows above it, of the same columns
//   rows_elsewhere  rows of other tiles, which another operand names, of the same columns
enum class Locality : std::uint8_t {
  tile_local,
  pair_local,
  head_local,
  full_row,
  contraction,
  full_column,
  row_halo,
  rows_elsewhere,
};

// Name and shape of one operand. A shape letter stands for one size in all operands of the
// operator; "2N" is twice N, "1" is one. Letters: M rows, N columns, K contraction, others free.
struct OperandSpec {
  const char* name = nullptr;
  const char* rows = "";
  const char* cols = "";
  bool optional = false;
};

// The operands that an operator reads, in order.
class OperandSpecs {
 public:
  constexpr OperandSpecs() = default;
  constexpr OperandSpecs(std::initializer_list<OperandSpec> specs) : count_(specs.size()) {
    std::size_t i = 0;
    for (const OperandSpec& spec : specs) specs_.at(i++) = spec;
  }
  [[nodiscard]] constexpr std::size_t size() const { return count_; }
  constexpr const OperandSpec& operator[](std::size_t i) const { return specs_.at(i); }
  [[nodiscard]] constexpr const OperandSpec* begin() const { return specs_.data(); }
  [[nodiscard]] constexpr const OperandSpec* end() const { return specs_.data() + count_; }

 private:
  std::array<OperandSpec, 8> specs_{};
  std::size_t count_ = 0;
};

// The rule that appends the operators of its gradient, or the reason why it has none.
struct GradientRule {
  void (*rule)(Adjoint&) = nullptr;
  const char* why_none = nullptr;

  constexpr GradientRule(void (*given)(Adjoint&)) : rule(given) {}
  static constexpr GradientRule none(const char* why) {
    GradientRule missing(nullptr);
    missing.why_none = why;
    return missing;
  }
};
constexpr GradientRule no_gradient(const char* why) { return GradientRule::none(why); }

// Rows and columns that the operator's tiles cover: its widest operand that is read or written as a
// tile.
struct Extent {
  std::int64_t rows = 0, cols = 0;
};

// Along which axis partial sums are left or finished.
enum class Sums : std::uint8_t { none, rows, columns };

// Where the columns of the result come from, when a weight's rows are reordered.
enum class ColumnOrder : std::uint8_t {
  kept,             // as those of every operand of the same width
  weight_rows,      // as the rows of the second operand
  heads_of_second,  // in every head as in the second operand's
  heads,            // in every head as in the first operand's
  side_by_side,     // one operand's behind the other's
  within_heads,     // the same in every head
  part_of_heads,    // as in the part of each of the operand's heads
  lost,             // not those of any operand
};

// What makes a loop over elements dearer than loads and stores alone.
enum class StreamCost : std::uint8_t {
  plain,
  rotation,          // pairs of columns and tables
  exponential,       // a sigmoid or tanh of each element
  error_function,    // of each element
  error_slope,       // the derivative of a function of it
  softmax,           // maximum, exponential and sum of a row
  welford,           // mean and variance in one walk
  deferred_welford,  // the scale and shift of such a row
  two_layouts,       // operands that lie in different orders
};

// How the backward pass makes a forward result again: an operator of this kind with these operands.
struct Again {
  OpKind kind;
  std::vector<Operand> reads;
};

// Of y = f(g)·u for pairs (gate, up): the operators that are f and its gradient, into which
// frameworks take it apart. The gradient of such an operator says the same and `backward`.
struct Gate {
  OpKind activation{};
  OpKind gradient{};
  bool backward = false;
};

struct Operator {
  Fact<const char*> name;
  Fact<OpClass> op_class;
  Fact<Locality> locality;
  Fact<const char*> formula;
  OperandSpecs reads;
  Fact<OperandSpec> write;
  Fact<Flops (*)(const Graph&, const Op&)> flops;
  // Terms of the longest sum that makes one output element; 1 for element-wise operators.
  Fact<std::int64_t (*)(const Graph&, const Op&)> sum_length;
  // Reads `in`, writes the operator's own slices of `out`, in fp64. `in` and `out` may be one
  // object.
  Fact<void (*)(const Graph&, const Op&, const TensorValues& in, TensorValues& out)> reference;
  // Appends the operator's primitives to a program; nothing for one that is its kernel's mainloop.
  Fact<void (*)(Emitter&, const Op&)> lower;
  Fact<Extent (*)(const Op&)> extent;
  GradientRule gradient;
  // How a framework launches the operator alone.
  Fact<Implementation (*)(const Graph&, const Op&)> framework;

  // What few operators have. ---------------------------------------------------------------------

  // A second result that the operator may also write, for the backward pass; null name = none.
  OperandSpec also_writes{};
  // Results that the operator always writes behind the first one: the gradients of the other
  // operands of a scan, which one walk makes together.
  OperandSpecs further_writes{};
  // Index of the operand of which only a part of each head's columns is read; -1 = none. The part
  // is the attribute HeadPart, or one half.
  int part_read = -1;
  // Of a head_local operator: columns of a head.
  std::int64_t (*head_width)(const Op&) = nullptr;
  // Index of the operand that holds row or column numbers, which have no gradient; -1 = none. And
  // how many numbers there are.
  int index_read = -1;
  std::int64_t (*index_range)(const Graph&, const Op&) = nullptr;
  // Index of the operand whose gradient has all rows of its tensor, with zeros in the rows that the
  // operator does not read; -1 = none.
  int all_rows_gradient = -1;
  // Index of the operand whose numbers must be negative, as rates of decay are, since a state would
  // grow from token to token otherwise; -1 = none.
  int negative_read = -1;
  // Index of the operand at whose zeros the result jumps: the slope of ReLU; -1 = none.
  int jump_read = -1;
  // Of a contraction: sets the program's mainloop and its result. `interleaved`: pairs of the
  // kernel are adjacent columns.
  void (*mainloop)(Emitter&, const Op&, bool interleaved) = nullptr;
  // Of an operator that needs full rows: the rows, when they are not those of its first operand.
  RowMainloop (*rows)(const Op&) = nullptr;
  bool attention = false;         // a step of attention or of its gradient
  bool appends = false;           // writes new rows after those that a cache holds
  bool before_attention = false;  // attention's kernel can do it to Q, K and V as they are loaded
  bool around_attention = false;  // the attention library launches it beside its kernel
  Sums finishes = Sums::none;     // sums up partials that other thread blocks left
  Sums partial = Sums::none;      // leaves partial sums, one a tile
  bool minor = false;             // a kernel is not named after it where others share the kernel
  bool (*in_parts)(const Op&) = nullptr;  // whether the columns of its result are made in parts
  const char* alone = nullptr;            // why no other operator shares its loop
  bool library_epilogue = false;          // library GEMMs take it as their epilogue
  std::int64_t statistics = 0;  // of a norm: columns of the statistics that its gradient needs
  void (*again)(Adjoint&, const Op&, Again&) = nullptr;  // makes its result again in another way
  bool given_by_gradient = false;  // its gradient's operator can write its result again
  bool cheap_again = false;        // an epilogue makes its result again faster than it loads it
  bool leads = false;              // decides how its kernel is launched, whatever else is in it
  ColumnOrder columns = ColumnOrder::kept;
  StreamCost stream = StreamCost::plain;
  bool scatters = false;  // sums gathered rows: no row of its operand stays resident
  Gate gate{};            // of a gated activation and of its gradient
  // What a framework launches beside the operator's own kernel or in its place, in order;
  // `generated`: a compiler that fuses element-wise loops. Null: nothing.
  FrameworkLaunches (*framework_launches)(const Graph&, const Op&, bool generated) = nullptr;
  // Whether a framework stores the result column by column; null: never. Element-wise operators
  // keep the order of their first operand.
  bool (*framework_turns)(const Op&) = nullptr;
  // How a block's text gives its attributes; null = only rewrites and gradients make the operator.
  Attributes (*called)(OperatorCall&) = nullptr;
};

}  // namespace fuseline
