// Which columns of every value of a program a tile of its index space holds. Found once for a
// program; the same for all policies.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "model/program.h"

namespace fuseline::executor {

// What a value is within a tile: a matrix, one number a row, one number a column, or columns of a
// table that repeat along the tile.
enum class Form : std::uint8_t { tile, per_row, per_col, table };

struct ColumnRange {
  std::int64_t begin = 0;
  std::int64_t end = 0;
  [[nodiscard]] std::int64_t count() const { return end - begin; }
  [[nodiscard]] bool empty() const { return end <= begin; }
};

// A result of a mainloop besides value 0.
struct MainloopResult {
  Value value = -1;
  Form form = Form::tile;
  std::int64_t width = 0;
};

class ValueLayout {
 public:
  // `anchor` is the value whose columns are those of the index space: the mainloop's result, or
  // what a prologue makes; it is `anchor_cols` wide. -1: none, as in streams, where the widest
  // values start at the index space's first column. `whole`: tiles hold all columns. `results`:
  // what the mainloop makes; `heads`: those that tiles in memory hold side by side for one of the
  // space.
  ValueLayout(std::span<const Primitive> primitives, Value anchor, std::int64_t anchor_cols,
              bool whole, std::span<const MainloopResult> results = {}, std::int64_t heads = 1);

  [[nodiscard]] bool knows(Value v) const { return values_.contains(v); }
  [[nodiscard]] Form form(Value v) const { return at(v).form; }
  [[nodiscard]] std::int64_t width(Value v) const { return at(v).width; }  // of all tiles together

  // Values that a table is combined with; their column c meets column c mod width of the table.
  [[nodiscard]] const std::vector<Value>& partners(Value table) const { return at(table).partners; }

  // Columns of the value that belong to columns [tile.begin, tile.end) of the index space; empty
  // when the tile holds none. per_row values and tables: the tile's own columns. Example: after a
  // pair map 2→1, tile [256, 512) holds columns [128, 256); after Columns{begin 128}, columns [128,
  // 384).
  [[nodiscard]] ColumnRange columns(Value v, ColumnRange tile) const;

 private:
  // column of the value = column of the index space · num / den + offset
  struct Relation {
    std::int64_t num = 1, den = 1, offset = 0;
  };
  struct Entry {
    Form form = Form::tile;
    std::int64_t width = 0;
    bool placed = false;
    Relation relation;
    std::vector<Value> partners{};  // of a table: the values it is combined with
  };
  [[nodiscard]] const Entry& at(Value v) const;
  void shape(const Primitive& primitive);
  void pair_tables(const std::vector<Value>& in);
  bool place(const Primitive& primitive);
  bool relate(Value a, Value b, std::int64_t num, std::int64_t den, std::int64_t offset);
  bool same_place(Value a, Value b) { return relate(a, b, 1, 1, 0); }
  void place_all(std::span<const Primitive> primitives);

  std::map<Value, Entry> values_;
  bool whole_ = false;
  std::int64_t heads_ = 1;
};

}  // namespace fuseline::executor
