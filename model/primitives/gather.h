// Row ids[m] of the table `from`, for every row m of the tile; with `each`, row ids[m] / each: ids
// then number the places of a token, of which it has so many.
#pragma once

#include <cstdint>

#include "model/primitives/primitive.h"

namespace fuseline {

struct Gather {
  static constexpr const char* name = "gather";
  Value out;
  Operand ids;
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
  friend bool operator==(const Gather&, const Gather&) = default;
};

}  // namespace fuseline
