// One number for each row, or for each column.
#pragma once

#include "model/primitives/primitive.h"

namespace fuseline {

struct LoadVector {
  static constexpr const char* name = "load_vector";
  Value out;
  Operand from;
  Axis axis;

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
  friend bool operator==(const LoadVector&, const LoadVector&) = default;
};

}  // namespace fuseline
