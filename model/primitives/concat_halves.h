// In every group of columns, `lower` fills the lower half and `upper` the upper one: the inverse of
// LoadHalves.
#pragma once

#include <cstdint>

#include "model/primitives/primitive.h"

namespace fuseline {

struct ConcatHalves {
  static constexpr const char* name = "concat_halves";
  Value out;
  Value lower;
  Value upper;
  std::int64_t group = 0;

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
  friend bool operator==(const ConcatHalves&, const ConcatHalves&) = default;
};

}  // namespace fuseline
