// A tile of `cols` columns with a 1 in column ids[m] of row m, 0 elsewhere.
#pragma once

#include <cstdint>

#include "model/primitives/primitive.h"

namespace fuseline {

struct OneHot {
  static constexpr const char* name = "one_hot";
  Value out;
  Operand ids;
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
  friend bool operator==(const OneHot&, const OneHot&) = default;
};

}  // namespace fuseline
