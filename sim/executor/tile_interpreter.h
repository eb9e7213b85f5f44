// Runs a program's primitives on one tile, one after the other. There is one implementation per
// primitive; policies and kernels are not known here.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "model/program.h"
#include "sim/executor/fault.h"
#include "sim/executor/memory.h"
#include "sim/executor/partial_sums.h"
#include "sim/executor/tile_maths.h"
#include "sim/executor/value_layout.h"

namespace fuseline::executor {

// Rows and columns of the index space that a tile covers. In a batch (the heads of unfused
// attention) they are those of one of its matrices, `height` rows each.
struct TileArea {
  std::int64_t row_begin = 0;
  std::int64_t row_end = 0;
  ColumnRange columns;
  std::int64_t row_tile = 0;  // the tile's place among the tiles
  std::int64_t col_tile = 0;
  std::int64_t batch = 1;
  std::int64_t batch_index = 0;
  std::int64_t height = 0;
  // Where the tile's rows begin in vectors along rows that have one number for each row and head
  // (every tile stores its own); -1: at row_begin, and the first tile of a row stores them.
  std::int64_t vector_begin = -1;
  // heads > 1: rows of the space are (b·heads + h)·tokens + t, tiles in memory have the heads side
  // by side.
  std::int64_t heads = 1;
  std::int64_t tokens = 0;

  [[nodiscard]] std::int64_t rows() const { return row_end - row_begin; }
};

// Where in an operand that holds all matrices of a batch one of them begins: stacked by rows, or
// side by side, where several may share one (grouped queries).
struct Corner {
  std::int64_t row = 0;
  std::int64_t col = 0;
};
Corner corner_of(const Operand& operand, std::int64_t batch, std::int64_t index,
                 std::int64_t height, std::int64_t width);

class TileInterpreter {
 public:
  // All must outlive the interpreter. `fault`: the primitive at which a fault acts.
  TileInterpreter(std::span<const Primitive> primitives, const ValueLayout& layout,
                  PartialSums& partials, std::optional<FaultPoint> fault = std::nullopt);

  // Takes the tile. Values of the tile before are gone.
  void begin(const TileArea& area);
  // A value of the tile; the mainloop writes its result into value 0 before run().
  Matrix& value(Value v);
  // Runs what `wanted` values, and with `effects` the stores of this tile, depend on: a tile loads
  // nothing that it does not need.
  void run(Port& port, std::span<const Value> wanted, bool effects);

 private:
  void execute(const LoadTile&);
  void execute(const LoadVector&);
  void execute(const LoadTable&);
  void execute(const Map&);
  void execute(const PairMap&);
  void execute(const RowReduce&);
  void execute(const TileReduce&);
  void execute(const OnlineLogSumExp&);
  void execute(const StoreTile&);
  void execute(const StoreVector&);
  void execute(const Columns&);
  void execute(const Mask&);
  void execute(const LoadHalves&);
  void execute(const ConcatHalves&);
  void execute(const Gather&);
  void execute(const ColumnReduce&);
  void execute(const HeadSum&);
  void execute(const GatherSum&);
  void execute(const OneHot&);

  void choose(std::span<const Value> wanted, bool effects);
  [[nodiscard]] bool stores_here(const Primitive& primitive) const;
  [[nodiscard]] ColumnRange columns(Value v) const { return layout_.columns(v, area_.columns); }
  [[nodiscard]] Corner corner(const Operand& operand, std::int64_t width) const;
  // Row `r` of the tile, column 0 of a value, in an operand that holds the whole value.
  [[nodiscard]] Corner place(const Operand& operand, std::int64_t width, std::int64_t r) const;
  // Operands of a map whose result is `out`: a table begins with the column that meets out's first.
  const Matrix& operand(Value v, Value out, Matrix& turned) const;
  Matrix& shaped(Value v);  // as the tile's part of the value, contents undefined
  [[nodiscard]] bool faulty(FaultKind kind) const;

  static std::size_t index(Value v) { return static_cast<std::size_t>(v); }

  std::span<const Primitive> primitives_;
  const ValueLayout& layout_;
  PartialSums& partials_;
  std::optional<FaultPoint> fault_;
  TileArea area_;
  Port* port_ = nullptr;
  std::size_t current_ = 0;
  std::vector<Matrix> values_;
  std::vector<char> needed_;  // by value
  std::vector<char> chosen_;  // by primitive
  std::vector<std::vector<Value>> reads_;
  std::vector<std::vector<Value>> makes_;
};

// The values that a primitive reads and makes.
std::vector<Value> inputs_of(const Primitive& primitive);
std::vector<Value> outputs_of(const Primitive& primitive);

}  // namespace fuseline::executor
