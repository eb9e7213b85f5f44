// In every group of columns, `lower` fills the first ones (half of them, where nothing else is
// said) and `upper` the others: the inverse of LoadHalves.
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
  std::int64_t lower_cols = 0;  // of a group; 0: half

  [[nodiscard]] std::int64_t first() const { return lower_cols > 0 ? lower_cols : group / 2; }

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
