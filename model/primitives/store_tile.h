// A tile goes to memory. A vector is stored to a tile by repetition: expand.
#pragma once

#include "model/primitives/primitive.h"

namespace fuseline {

struct StoreTile {
  static constexpr const char* name = "store_tile";
  Value in;
  Operand to;
  bool accumulate = false;

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
  friend bool operator==(const StoreTile&, const StoreTile&) = default;
};

}  // namespace fuseline
