// Some columns of every group of columns of `from`, where they are no half: those of a head that
// RoPE turns, and every second one of them. No others move.
#pragma once

#include "model/primitives/primitive.h"

namespace fuseline {

struct LoadPart {
  static constexpr const char* name = "load_part";
  Value out;
  Operand from;
  ColumnPart part;

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
  friend bool operator==(const LoadPart&, const LoadPart&) = default;
};

}  // namespace fuseline
