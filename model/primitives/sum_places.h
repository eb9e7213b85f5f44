// Rows of the tile as sums of rows that lie elsewhere, at known places: row m is the sum of the
// rows places[m·each + j] of `from` for j < each, in the order of j. The transpose of a Gather
// whose ids are places, where the inverse of its ids is known: nothing has to be looked for, as in
// GatherSum.
#pragma once

#include <cstdint>

#include "model/primitives/primitive.h"

namespace fuseline {

struct SumPlaces {
  static constexpr const char* name = "sum_places";
  Value out;
  Operand places;
  Operand from;
  std::int64_t each = 1;

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
  friend bool operator==(const SumPlaces&, const SumPlaces&) = default;
};

}  // namespace fuseline
