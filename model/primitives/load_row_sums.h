// One number for each row: the sum of the numbers that the row has in an operand, or of every
// second one of them. So a tile finishes the partials of its rows itself, which other tiles of the
// same rows do again.
#pragma once

#include <cstdint>

#include "model/primitives/primitive.h"

namespace fuseline {

struct LoadRowSums {
  static constexpr const char* name = "load_row_sums";
  Value out;
  Operand from;            // [rows, numbers of a row]
  std::int64_t every = 1;  // columns first, first + every, ... are summed
  std::int64_t first = 0;

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
  friend bool operator==(const LoadRowSums&, const LoadRowSums&) = default;
};

}  // namespace fuseline
