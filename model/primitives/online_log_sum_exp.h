// Online log-sum-exp with target select. Of every partial_tile columns of a row three fp32 numbers,
// each in a third of the partial's columns: the maximum, the sum of exponentials above it, and the
// target's value, 0 where the target's column lies elsewhere.
#pragma once

#include "model/primitives/primitive.h"

namespace fuseline {

struct OnlineLogSumExp {
  static constexpr const char* name = "online_log_sum_exp";
  Value in;
  Operand targets;
  Operand partial;

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
  friend bool operator==(const OnlineLogSumExp&, const OnlineLogSumExp&) = default;
};

}  // namespace fuseline
