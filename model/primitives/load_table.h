// A [T, d] table addressed by (row mod T, column mod d): cos and sin of RoPE, a norm's weight of
// every head. A table may be narrower than the period in which it repeats: RoPE that turns only the
// first columns of each head.
#pragma once

#include <cstdint>

#include "model/primitives/primitive.h"

namespace fuseline {

struct LoadTable {
  static constexpr const char* name = "load_table";
  Value out;
  Operand from;
  std::int64_t period = 0;  // it begins again after so many columns; 0: after its own
  double rest = 0;          // the number in columns of a period that the table does not have

  [[nodiscard]] std::int64_t width() const { return period > 0 ? period : from.cols; }

  [[nodiscard]] std::vector<Value> uses() const;
  [[nodiscard]] std::vector<Value> defines() const;
  [[nodiscard]] std::vector<Access> accesses() const;
  [[nodiscard]] std::vector<ValueShape> results(const ValueShapes& made, std::int64_t heads) const;
  [[nodiscard]] std::vector<ColumnRelation> relations() const;
  [[nodiscard]] TileDemands demands() const;
  // Of 8 numbers a load, the exchange with the lanes of a quad, and to fp32; counted as maps are
  // (map_function.h).
  [[nodiscard]] double instructions() const { return 3.75; }
  bool check(ShapeCheck& check) const;
  [[nodiscard]] CodeLine text(const ProgramNames& names) const;
  void evaluate(TileContext& tile) const;
  void epilogue(EpilogueCode& code) const;
  void stream(StreamCode& code) const;
  friend bool operator==(const LoadTable&, const LoadTable&) = default;
};

}  // namespace fuseline
