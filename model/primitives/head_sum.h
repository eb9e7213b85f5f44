// Sums over `count` adjacent groups of `width` columns: heads of `width` that share a key. The
// result has 1/count of the columns.
#pragma once

#include <cstdint>

#include "model/primitives/primitive.h"

namespace fuseline {

struct HeadSum {
  static constexpr const char* name = "head_sum";
  Value out;
  Value in;
  std::int64_t count = 1;
  std::int64_t width = 0;

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
  friend bool operator==(const HeadSum&, const HeadSum&) = default;
};

}  // namespace fuseline
