// One row for each sequence: row m of a tile takes row m / tokens of a [B, N] operand, such as the
// scales and shifts that a condition gives.
#pragma once

#include <cstdint>

#include "model/primitives/primitive.h"

namespace fuseline {

struct LoadSequence {
  static constexpr const char* name = "load_sequence";
  Value out;
  Operand from;
  std::int64_t tokens = 0;  // rows of a sequence

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
  friend bool operator==(const LoadSequence&, const LoadSequence&) = default;
};

}  // namespace fuseline
