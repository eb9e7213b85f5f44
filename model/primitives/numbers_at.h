// A matrix of `cols` columns from one number a row that lie elsewhere: element (r, c) is the number
// of row places[r·cols + c] of `from`. What PlaceNumbers makes of the inverse of these places, for
// which every tile looks through all of them.
#pragma once

#include <cstdint>

#include "model/primitives/primitive.h"

namespace fuseline {

struct NumbersAt {
  static constexpr const char* name = "numbers_at";
  Value out;
  Operand places;
  Operand from;
  std::int64_t cols = 1;

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
  friend bool operator==(const NumbersAt&, const NumbersAt&) = default;
};

}  // namespace fuseline
