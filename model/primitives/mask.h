// Scores of keys that the query may not see become -inf: causal and sliding-window masks of
// `shape`.
#pragma once

#include "model/operators/attributes.h"
#include "model/primitives/primitive.h"

namespace fuseline {

struct Mask {
  static constexpr const char* name = "mask";
  Value out;
  Value in;
  AttentionShape shape;

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
  friend bool operator==(const Mask&, const Mask&) = default;
};

}  // namespace fuseline
