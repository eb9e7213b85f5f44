// Forms and widths of values, and how the columns of a primitive's values lie to each other.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "model/primitives/basics.h"

namespace fuseline {

// What a value is within a tile: a matrix, one number a row, one number a column, columns of a
// table that repeat along the tile, or one number for each row of each head's scores [B·H·T].
enum class Form : std::uint8_t { tile, per_row, per_col, table, per_score_row };

// width: columns of all tiles together; of one number a row, 1; of a table, d.
struct ValueShape {
  Form form = Form::tile;
  std::int64_t width = 0;
  friend bool operator==(const ValueShape&, const ValueShape&) = default;
};
using ValueShapes = std::map<Value, ValueShape>;

// InternalError: nothing makes the value.
const ValueShape& shape_of(const ValueShapes& shapes, Value v);

// column of `to` = column of `from` · num / den + offset
struct ColumnRelation {
  Value from, to;
  std::int64_t num = 1, den = 1, offset = 0;
  // Adjacent pairs of `from` become one column: the thread that has a pair has that column.
  bool pairs = false;
};

// Columns [begin, begin + cols) of value `of`.
struct ColumnSlice {
  Value of;
  std::int64_t begin = 0, cols = 0;
};

// What the tile must be like around a primitive, beyond its operands' shapes.
struct TileDemands {
  // So many adjacent columns lie in one tile.
  std::int64_t column_group = 1;
  // Columns move in runs of so many; 0: of any length.
  std::int64_t column_run = 0;
  bool whole_rows = false;        // one tile has all columns of a row
  bool whole_columns = false;     // one tile has all rows of a column
  std::int64_t rows_of_tile = 0;  // one tile has so many rows, those of a sequence; 0: any
  // Element (r, c) of a result comes from the elements (r, c) of the operands alone.
  bool elementwise = false;
  // Pairs of columns so far apart meet, and one thread may hold both; 0: none do.
  std::int64_t pair_distance = 0;
  // Columns of a result come from columns at other places, which other threads hold.
  bool other_columns = false;
  // What a warp of a stream or row kernel does one after the other, each step waiting for the one
  // before it.
  struct Chain {
    std::int64_t loads = 0;     // whose addresses other loads bring
    std::int64_t choices = 0;   // among all columns of a row
    std::int64_t searches = 0;  // steps through numbers in memory
    std::int64_t rows = 4;      // of a warp that searches
  };
  Chain chain{};
  // What follows from the result runs only in the tiles that hold these columns.
  std::optional<ColumnSlice> slice{};
};

}  // namespace fuseline
