// One number for every row m of the tile, from the matrix `from` [R, C]: the one at place ids[m] of
// its rows behind each other, row ids[m] / C and column ids[m] mod C.
#pragma once

#include "model/primitives/primitive.h"

namespace fuseline {

struct GatherNumber {
  static constexpr const char* name = "gather_number";
  Value out;
  Operand ids;
  Operand from;

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
  friend bool operator==(const GatherNumber&, const GatherNumber&) = default;
};

}  // namespace fuseline
