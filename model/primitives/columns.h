// Columns [begin, begin + cols) of a tile; what follows runs only in the tiles that hold them.
#pragma once

#include <cstdint>

#include "model/primitives/primitive.h"

namespace fuseline {

struct Columns {
  static constexpr const char* name = "columns";
  Value out;
  Value in;
  std::int64_t begin = 0;
  std::int64_t cols = 0;

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
  friend bool operator==(const Columns&, const Columns&) = default;
};

}  // namespace fuseline
