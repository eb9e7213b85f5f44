// One number of a row for every `group` columns, at each of these columns: the scale of a head.
#pragma once

#include <cstdint>

#include "model/primitives/primitive.h"

namespace fuseline {

struct LoadGroups {
  static constexpr const char* name = "load_groups";
  Value out;
  Operand from;  // [rows, columns / group]
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
  friend bool operator==(const LoadGroups&, const LoadGroups&) = default;
};

}  // namespace fuseline
