// A matrix of `cols` columns from one number a row, in a stream over the matrix: element (r, c) is
// the number of the row p of `from` with ids[p] = r·cols + c. Every tile reads all ids.
#pragma once

#include <cstdint>

#include "model/primitives/primitive.h"

namespace fuseline {

struct PlaceNumbers {
  static constexpr const char* name = "place_numbers";
  Value out;
  Operand ids;
  Operand from;
  std::int64_t cols = 1;

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
  friend bool operator==(const PlaceNumbers&, const PlaceNumbers&) = default;
};

}  // namespace fuseline
