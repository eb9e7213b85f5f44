// One half of every group of `group` columns of `from` (x2 of RoPE's heads; the sums among the
// moments): half its columns move.
#pragma once

#include "model/primitives/primitive.h"

namespace fuseline {

struct LoadHalves {
  static constexpr const char* name = "load_halves";
  Value out;
  Operand from;
  std::int64_t group = 0;
  bool upper = false;

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
  friend bool operator==(const LoadHalves&, const LoadHalves&) = default;
};

}  // namespace fuseline
