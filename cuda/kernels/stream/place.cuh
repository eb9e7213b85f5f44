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

// The first `cols` columns of the space: values of parts that are narrower.
template <class Place>
FUSELINE_HD Place within(const Place& place, int cols) {
  Place part = place;
  part.cols = cols;
  return part;
}

// The same rows in a space of `cols` columns, where column_of(c) takes the place of column c.
template <class Place, class ColumnOf>
struct Elsewhere : Place {
  ColumnOf column_of;
  FUSELINE_HD Elsewhere(const Place& place, int cols_there, const ColumnOf& f)
      : Place(place), column_of(f) {
    this->cols = cols_there;
  }
  FUSELINE_HD int col(int u) const { return column_of(Place::col(u)); }
  FUSELINE_HD int memory_col(int u) const { return Place::memory_col(u) - Place::col(u) + col(u); }
};
// What `value` computes at the columns column_of(c). `together`: it sends 8 neighbours to 8
// neighbours; else every column is computed by itself.
template <bool together, class Place, class ColumnOf, class Value>
FUSELINE_HD Strip<Place::units> value_elsewhere(const Place& place, int cols,
                                                const ColumnOf& column_of, Value&& value) {
  if constexpr (together) {
    return value(Elsewhere<Place, ColumnOf>(place, cols, column_of));
  } else {
    Strip<Place::units> out;
#pragma unroll
    for (int e = 0; e < vector_cols; ++e) {
      const auto next = [&column_of, e](int c) { return column_of(c + e); };
      const auto x = value(Elsewhere<Place, decltype(next)>(place, cols, next));
#pragma unroll
      for (int u = 0; u < Place::units; ++u) out.at(u, e) = x.at(u, 0);
    }
    return out;
  }
}

// Rows ids[row] of a table; ids are whole numbers of any type, one per row.
template <class Place>
struct GatheredRows : Place {
  int gathered[Place::row_units];
  FUSELINE_HD int memory_row(int u) const { return gathered[Place::row_units == 1 ? 0 : u]; }
};
template <class Ids, class Place>
FUSELINE_HD int id_of(const Ids& ids, const Place& place, int u) {
  return place.row(u) < place.rows ? static_cast<int>(ids.data[place.row(u) * ids.step]) : -1;
}
// With `each`, rows ids[row] / each: ids are then places, of which a row of the table has so many.
template <int each = 1, class Place, class Ids>
FUSELINE_HD GatheredRows<Place> gather(const Place& place, const Ids& ids) {
  GatheredRows<Place> out;
  static_cast<Place&>(out) = place;
#pragma unroll
  for (int u = 0; u < Place::row_units; ++u)
    out.gathered[u] = max_of(id_of(ids, place, u), 0) / each;
  return out;
}

// One row for each sequence: row m is row m / tokens of the operand.
template <int tokens, class Place>
struct SequenceRows : Place {
  FUSELINE_HD int memory_row(int u) const { return Place::row(u) / tokens; }
};
template <int tokens, class Place>
FUSELINE_HD SequenceRows<tokens, Place> sequence_rows(const Place& place) {
  SequenceRows<tokens, Place> out;
  static_cast<Place&>(out) = place;
  return out;
}

// Rows of one part of a tensor of joined sequences: of every `joint` rows those from `begin` on,
// `count` of them. The part's own tensor has them without the others in between; a row of another
// part lies outside.
template <int joint, int begin, int count, class Place>
struct RowsOfPart : Place {
  FUSELINE_HD bool holds(int u) const {
    const int within = Place::row(u) % joint - begin;
    return within >= 0 && within < count;
  }
  FUSELINE_HD int row(int u) const { return holds(u) ? Place::row(u) : this->rows; }
  FUSELINE_HD int memory_row(int u) const {
    return Place::row(u) / joint * count + Place::row(u) % joint - begin;
  }
};
template <int joint, int begin, int count, class Place>
FUSELINE_HD RowsOfPart<joint, begin, count, Place> rows_of_part(const Place& place) {
  RowsOfPart<joint, begin, count, Place> out;
  static_cast<Place&>(out) = place;
  return out;
}
// The part's value in its own rows, `other` in those of other parts.
template <int joint, int begin, int count, class Place, int units>
FUSELINE_HD Strip<units> join_rows(const RowsOfPart<joint, begin, count, Place>& part,
                                   const Strip<units>& own, const Strip<units>& other) {
  Strip<units> out;
  for_each<Strip<units>>(
      [&](int u, int e) { out.at(u, e) = part.holds(u) ? own.at(u, e) : other.at(u, e); });
  return out;
}

// The row `back` rows above, in the same sequence of `tokens` rows. Rows that it does not have lie
// outside.
template <class Place>
struct RowsAbove : Place {
  int tokens, back;
  FUSELINE_HD bool holds(int u) const { return Place::row(u) % tokens >= back; }
  FUSELINE_HD int row(int u) const { return holds(u) ? Place::row(u) : this->rows; }
  FUSELINE_HD int memory_row(int u) const { return Place::memory_row(u) - back; }
};
template <class Place>
FUSELINE_HD RowsAbove<Place> rows_above(const Place& place, int tokens, int back) {
  RowsAbove<Place> out;
  static_cast<Place&>(out) = place;
  out.tokens = tokens;
  out.back = back;
  return out;
}
// The rows that RowsAbove does not have: those of a state that has the `halo` rows ahead of every
// sequence.
template <int halo, class Place>
struct RowsAhead : RowsAbove<Place> {
  using Above = RowsAbove<Place>;
  FUSELINE_HD int row(int u) const { return Above::holds(u) ? this->rows : Place::row(u); }
  FUSELINE_HD int memory_row(int u) const {
    const int sequence = Place::row(u) / this->tokens, token = Place::row(u) % this->tokens;
    return sequence * halo + halo + token - this->back;
  }
};
template <int halo, class Place>
FUSELINE_HD RowsAhead<halo, Place> rows_ahead(const Place& place, int tokens, int back) {
  RowsAhead<halo, Place> out;
  static_cast<RowsAbove<Place>&>(out) = rows_above(place, tokens, back);
  return out;
}

// The row `ahead` rows below, in the same sequence of `tokens` rows. Rows that it does not have lie
// outside.
template <class Place>
struct RowsBelow : Place {
  int tokens, ahead;
  FUSELINE_HD bool holds(int u) const { return Place::row(u) % tokens + ahead < tokens; }
  FUSELINE_HD int row(int u) const { return holds(u) ? Place::row(u) : this->rows; }
  FUSELINE_HD int memory_row(int u) const { return Place::memory_row(u) + ahead; }
};
template <class Place>
FUSELINE_HD RowsBelow<Place> rows_below(const Place& place, int tokens, int ahead) {
  RowsBelow<Place> out;
  static_cast<Place&>(out) = place;
  out.tokens = tokens;
  out.ahead = ahead;
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
