// What a primitive's evaluation may touch: values of one tile, memory, and the tile's place.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "model/primitives/shapes.h"
#include "model/primitives/tile_maths.h"

namespace fuseline {

struct ColumnRange {
  std::int64_t begin = 0;
  std::int64_t end = 0;
  [[nodiscard]] std::int64_t count() const { return end - begin; }
  [[nodiscard]] bool empty() const { return end <= begin; }
};

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

// Where in an operand that holds all matrices of a batch one of them begins.
struct Corner {
  std::int64_t row = 0;
  std::int64_t col = 0;
};

// Counted loads and stores. Row and column are those of the operand.
class TileMemory {
 public:
  virtual ~TileMemory() = default;
  virtual void load(const Operand& from, std::int64_t row, std::int64_t col, std::int64_t count,
                    float* values) = 0;
  virtual void store(const Operand& to, std::int64_t row, std::int64_t col, std::int64_t count,
                     const float* values) = 0;
  // A row of the tensor itself, where the program computes its number.
  virtual void load_row(const Operand& from, std::int64_t row, std::int64_t col, std::int64_t count,
                        float* values) = 0;
};

// How an evaluation can be made wrong on purpose, to see that checks find it.
enum class EvaluationFault : std::uint8_t {
  none,
  forgets_second,     // the result is the first operand
  forgets_first,      // the result is the second operand
  wrong_sign,         // a rotation turns the wrong way, a negation is none
  swaps_pairs,        // the two columns of every pair change places
  leaves_out_last,    // a sum along a row lacks its last terms
  misses_column_end,  // a sum along a row or a column lacks its last terms
};

// Numbers that a tile has of the partials of one block of partial_tile rows or columns.
struct Partials {
  std::int64_t block = 0;   // which one along the reduced axis
  std::int64_t across = 0;  // the first row (column) along the other axis
  std::int64_t part = 0;    // the tile's place along the reduced axis
  bool whole = false;       // no other tile has a part of the block
  std::vector<float> numbers{};
};
// How the parts of a block that several tiles share become one, and where its numbers go.
struct PartialRule {
  std::function<void(std::vector<float>& joined, const std::vector<float>& part)> join;
  std::function<void(TileMemory& memory, const Partials& all)> store;
};

class TileContext {
 public:
  virtual ~TileContext() = default;

  [[nodiscard]] virtual const TileArea& area() const = 0;
  virtual TileMemory& memory() = 0;
  // The tile's part of a value that is made already.
  virtual Matrix& value(Value v) = 0;
  // The tile's part of a value that is made now: sized, contents undefined.
  virtual Matrix& result(Value v) = 0;
  // An operand of element-wise work whose result is `out`: a table begins with the column that
  // meets out's first, turned into `turned` where it does not by itself.
  virtual const Matrix& operand(Value v, Value out, Matrix& turned) const = 0;

  // Form and width of the whole value, and the columns of it that belong to the tile.
  [[nodiscard]] virtual Form form(Value v) const = 0;
  [[nodiscard]] virtual std::int64_t width(Value v) const = 0;
  [[nodiscard]] virtual ColumnRange columns(Value v) const = 0;
  // Values whose column c meets column c mod width of the table.
  [[nodiscard]] virtual const std::vector<Value>& partners(Value table) const = 0;
  // Row `r` of the tile, column 0 of a value, in an operand that holds the whole value.
  [[nodiscard]] virtual Corner place(const Operand& operand, std::int64_t width,
                                     std::int64_t r) const = 0;

  // Stores partials, those of a block that tiles share when the last tile is done.
  virtual void leave(Partials partials, const PartialRule& rule) = 0;
  [[nodiscard]] virtual EvaluationFault fault() const = 0;
};

}  // namespace fuseline
