// For every row p of the tile, which of the numbers of `keys` [M, k] stands at place p when all are
// sorted: keys of row m and column j have the place m·k + j before. Equal keys keep their order.
#pragma once

#include "model/primitives/primitive.h"

namespace fuseline {

struct SortPlaces {
  static constexpr const char* name = "sort_places";
  Value out;
  Operand keys;

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
  friend bool operator==(const SortPlaces&, const SortPlaces&) = default;
};

}  // namespace fuseline
