// The analysis of a program's values: what each is, how wide, which of its columns a tile of the
// index space holds, and from where to where it lives. The checker asks the same primitives for the
// shapes; the executor, the traffic, the tile choice and the device code ask this.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "model/primitives/tile_context.h"
#include "model/program.h"

namespace fuseline {

// A result of a mainloop besides value 0.
struct MainloopResult {
  Value value = -1;
  Form form = Form::tile;
  std::int64_t width = 0;
};

// Places in the list of primitives; -1 before all of them: the mainloop makes it.
struct Lifetime {
  std::ptrdiff_t made = -1;
  std::ptrdiff_t first_use = -1;
  std::ptrdiff_t last_use = -1;
};

class ValueAnalysis {
 public:
  // `anchor` is the value whose columns are those of the index space: the mainloop's result, or
  // what a prologue makes. It is `anchor_cols` wide. -1: there is none, as in streams, where the
  // widest values begin at the first column of the index space. `whole`: tiles hold all columns.
  // `results`: what the mainloop makes. `heads`: how many heads a tile in memory holds side by side
  // where the index space has one. InternalError: a value is used before it is made.
  ValueAnalysis(std::span<const Primitive> primitives, Value anchor, std::int64_t anchor_cols,
                bool whole, std::span<const MainloopResult> results = {}, std::int64_t heads = 1);

  [[nodiscard]] bool knows(Value v) const { return values_.contains(v); }
  [[nodiscard]] const ValueShape& shape(Value v) const { return shape_of(shapes_, v); }
  [[nodiscard]] Form form(Value v) const { return shape(v).form; }
  [[nodiscard]] std::int64_t width(Value v) const { return shape(v).width; }
  [[nodiscard]] const Lifetime& life(Value v) const { return at(v).life; }
  [[nodiscard]] const ValueShapes& shapes() const { return shapes_; }

  // The values that a table is combined with: their column c with column c mod width of the table.
  [[nodiscard]] const std::vector<Value>& partners(Value table) const { return at(table).partners; }

  // Columns of the value that belong to columns [tile.begin, tile.end) of the index space; empty
  // when the tile holds none. per_row values and tables: the tile's own columns. Example: after a
  // pair map 2→1, tile [256, 512) holds columns [128, 256); after Columns{begin 128}, columns [128,
  // 384).
  [[nodiscard]] ColumnRange columns(Value v, ColumnRange tile) const;
  // Columns of the index space for one of the value: 2 behind a pair map 2→1.
  [[nodiscard]] std::int64_t columns_each(Value v) const;
  // The other way: where in the index space all columns of the value lie.
  [[nodiscard]] ColumnRange span(Value v) const;
  // Numbers of the value that belong to `rows` rows and `cols` columns of the index space, 4 bytes
  // each on chip. Of tables as many as of the tiles that they meet.
  [[nodiscard]] std::int64_t numbers(Value v, std::int64_t rows, std::int64_t cols) const;

 private:
  // column of the value = column of the index space · num / den + offset
  struct Place {
    std::int64_t num = 1, den = 1, offset = 0;
  };
  struct Entry {
    bool placed = false;
    Place place{};
    std::vector<Value> partners{};  // of a table
    Lifetime life{};
  };
  [[nodiscard]] const Entry& at(Value v) const;
  void add(const Primitive& primitive, std::ptrdiff_t index, std::int64_t heads);
  void pair_tables(const std::vector<Value>& uses);
  void partners_through_maps(std::span<const Primitive> primitives);
  bool relate(const ColumnRelation& relation);
  void place_all(std::span<const Primitive> primitives);

  ValueShapes shapes_;
  std::map<Value, Entry> values_;
  bool whole_ = false;
};

// Of a program's body.
ValueAnalysis analyse(const Program& program);

}  // namespace fuseline
