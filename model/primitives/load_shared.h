// Columns that all heads share: `from` [M, A], again and again along the columns, `times` times.
#pragma once

#include <cstdint>

#include "model/primitives/primitive.h"

namespace fuseline {

struct LoadShared {
  static constexpr const char* name = "load_shared";
  Value out;
  Operand from;
  std::int64_t times = 1;

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
  friend bool operator==(const LoadShared&, const LoadShared&) = default;
};

}  // namespace fuseline
