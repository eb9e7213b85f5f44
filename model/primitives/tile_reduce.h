// Tile reduction: leaves as fp32 partials [M, ceil(N/tileN)] (rows) or [N, ceil(M/tileM)] (cols),
// tile edges partial_tile. Two adjacent columns a tile: sum_and_squares, and where `second` is a
// value, whose sums follow those of `in`.
#pragma once

#include <cstdint>
#include <string>

#include "model/primitives/primitive.h"
#include "model/primitives/reduce_function.h"

namespace fuseline {

struct TileReduce {
  static constexpr const char* name = "tile_reduce";
  ReduceFn fn;
  Axis axis;
  Value in;
  Operand partial;
  Value second = -1;

  // That one partial of a row (column) has.
  [[nodiscard]] std::int64_t numbers() const { return fn->also != nullptr || second >= 0 ? 2 : 1; }
  // The device code of the `index`-th of them.
  void leave(StreamCode& code, const char* reducer, Value v, const std::string& to,
             int index) const;

  [[nodiscard]] std::vector<Value> uses() const;
  [[nodiscard]] std::vector<Value> defines() const;
  [[nodiscard]] std::vector<Access> accesses() const;
  [[nodiscard]] std::vector<ValueShape> results(const ValueShapes& made, std::int64_t heads) const;
  [[nodiscard]] std::vector<ColumnRelation> relations() const;
  [[nodiscard]] TileDemands demands() const;
  bool check(ShapeCheck& check) const;
  [[nodiscard]] CodeLine text(const ProgramNames& names) const;
  void evaluate(TileContext& tile) const;
  void epilogue(EpilogueCode& code) const;
  void stream(StreamCode& code) const;
  friend bool operator==(const TileReduce&, const TileReduce&) = default;
};

}  // namespace fuseline
