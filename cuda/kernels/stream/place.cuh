// Where a thread's units lie in the [rows, cols] space of a program, and places derived from it:
// another column, a gathered row. A load from a derived place is how halves, heads and tables of
// embeddings are read.
#pragma once

#include "value.cuh"

namespace fuseline::gpu::stream {

// Tiles of a stream: unit u is row + u · row_step, at the same 8 columns.
template <int units_>
struct TilePlace {
  static constexpr int units = units_;
  static constexpr int row_units = units_, col_units = 1;  // of vectors along rows and columns
  int first_row, row_step, first_col;
  int rows, cols;
  FUSELINE_HD int row(int u) const { return first_row + u * row_step; }
  FUSELINE_HD int col(int) const { return first_col; }
  // In memory a row of the space is a row of the operand.
  FUSELINE_HD int memory_row(int u) const { return row(u); }
  FUSELINE_HD int memory_col(int) const { return first_col; }
  FUSELINE_HD bool writes_rows() const { return first_col == 0; }  // of vectors along rows
  FUSELINE_HD TilePlace at_column(int col) const {
    TilePlace p = *this;
    p.first_col = col;
    return p;
  }
};

// The same where columns c and c + distance form a pair: units 2 i and 2 i + 1 are a row's 8
// columns in the lower and in the upper half of a group of 2 · distance, so that a pair is in one
// thread. `first_col` counts the columns of lower halves.
template <int units_, int distance>
struct PairPlace {
  static_assert(units_ % 2 == 0 && distance % vector_cols == 0, "whole vectors in pairs");
  static constexpr int units = units_;
  static constexpr int row_units = units_, col_units = units_;
  int first_row, row_step, first_col;
  int rows, cols;
  FUSELINE_HD int row(int u) const { return first_row + u / 2 * row_step; }
  FUSELINE_HD int col(int u) const {
    return first_col / distance * 2 * distance + first_col % distance + u % 2 * distance;
  }
  FUSELINE_HD int memory_row(int u) const { return row(u); }
  FUSELINE_HD int memory_col(int u) const { return col(u); }
  FUSELINE_HD bool writes_rows() const { return first_col == 0; }
};

// A row mainloop: unit u is first_col + u · col_step of one row. With heads > 1, row
// (b · heads + h) · tokens + t of the space is columns [h · cols, (h + 1) · cols) of row
// b · tokens + t in memory.
template <int units_>
struct WholeRow {
  static constexpr int units = units_;
  static constexpr int row_units = 1, col_units = units_;
  int the_row, first_col, col_step;
  int rows, cols;
  int operand_row, operand_col;  // what that is in memory; the column of the row's start
  FUSELINE_HD int row(int) const { return the_row; }
  FUSELINE_HD int col(int u) const { return first_col + u * col_step; }
  FUSELINE_HD int memory_row(int) const { return operand_row; }
  FUSELINE_HD int memory_col(int u) const { return operand_col + col(u); }
  FUSELINE_HD bool writes_rows() const { return first_col == 0; }
};

// Rows ids[row] of a table.
template <class Place>
struct GatheredRows : Place {
  int gathered[Place::row_units];
  FUSELINE_HD int memory_row(int u) const { return gathered[Place::row_units == 1 ? 0 : u]; }
};
template <class Place>
FUSELINE_HD GatheredRows<Place> gather(const Place& place, const int* ids) {
  GatheredRows<Place> out;
  static_cast<Place&>(out) = place;
#pragma unroll
  for (int u = 0; u < Place::row_units; ++u)
    out.gathered[u] = place.row(u) < place.rows ? ids[place.row(u)] : 0;
  return out;
}

// Columns [begin, begin + cols) of the space, counted from the part's start. What belongs to the
// part is stored only there: if (in_columns(part)).
template <int units>
FUSELINE_HD TilePlace<units> columns(const TilePlace<units>& place, int begin, int cols) {
  TilePlace<units> part = place.at_column(place.first_col - begin);
  part.cols = cols;
  return part;
}
template <int units>
FUSELINE_HD bool in_columns(const TilePlace<units>& part) {
  return part.first_col >= 0 && part.first_col < part.cols;
}

}  // namespace fuseline::gpu::stream
