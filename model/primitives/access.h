// What a primitive moves between memory and the tile.
#pragma once

#include <cstdint>

#include "model/column_part.h"
#include "model/primitives/basics.h"

namespace fuseline {

// Which elements of an operand a tile moves. From it follow the bytes that all tiles ask for, the
// order in which caches see them, and the device function that moves them.
enum class Reach : std::uint8_t {
  tile,           // its own rows and columns: every element moves in one tile
  part_columns,   // the same of some columns of every group of them
  row_numbers,    // one number for each of its rows: tiles beside each other move the same
  col_numbers,    // one number for each of its columns: tiles below each other move the same
  table,          // row mod T, column mod d of a [T, d] table
  gathered_rows,  // rows whose numbers another operand has
  all_numbers,    // one number of every row of another tensor: every tile moves them all
  summed_rows,    // rows that add up in rows of the tile: every element moves in one tile
  partials,       // fp32 partials of a tile reduction
  rows_above,     // its own rows, and rows above them of the same sequence: a window along tokens
  sequence_rows,  // row / tokens: one row for each sequence that the tile meets, its own columns
  rows_below,     // its own rows, and rows below them of the same sequence
  rows_before,    // of a state [B·halo, N], what such a window takes before a sequence's first row
};

struct Access {
  Operand operand;
  Reach reach;
  bool store = false;
  bool accumulate = false;  // store: what is there is loaded and added to first
  ColumnPart part{};        // part_columns: which
  std::int64_t period = 0;  // table: begins again after so many columns; 0: its own
  double rest = 0;          // table: the number in columns of a period that it does not have
  // Whole numbers that name rows, columns or places: 0 to names - 1; 0: any numbers.
  std::int64_t names = 0;
  Axis along = Axis::rows;   // partials: the reduced axis lies along rows: one partial of a row, or
                             // of a column
  std::int64_t indices = 0;  // gathered_rows: how many rows are named

  // rows_above, rows_before: the window reaches so many rows back, rows_below: so many ahead; rows
  // are b·tokens + t, here and in sequence_rows.
  std::int64_t halo = 0;
  std::int64_t tokens = 0;

  // Rows of the operand that a tile of rows [first, first + count) takes: of rows_above,
  // rows_below, rows_before or sequence_rows, each once.
  [[nodiscard]] std::int64_t rows_of_tile(std::int64_t first, std::int64_t count) const;
  // Elements that move when each moves once.
  [[nodiscard]] std::int64_t elements() const;
  // As many columns as move, and other ones for other parts; the part says where they lie.
  [[nodiscard]] Operand moved() const;
};

}  // namespace fuseline
