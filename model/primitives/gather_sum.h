// The transpose of Gather, in a stream over the rows of a table: row v of the tile is the sum of
// the rows m of `from` with ids[m] / each = v, in the order of m; without ids, with m mod `period`
// = v. Every tile reads all ids.
#pragma once

#include <cstdint>
#include <optional>

#include "model/primitives/primitive.h"

namespace fuseline {

struct GatherSum {
  static constexpr const char* name = "gather_sum";
  Value out;
  std::optional<Operand> ids;
  Operand from;
  std::int64_t period = 0;
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
  friend bool operator==(const GatherSum&, const GatherSum&) = default;
};

}  // namespace fuseline
