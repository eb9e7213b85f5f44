// Sums over the rows of each sequence: row b of `to` is the sum of rows [b·tokens, (b + 1)·tokens)
// of the value. In a stream whose tiles hold the rows of one sequence: the thread block walks down
// its columns, and stores one number a column at the end.
#pragma once

#include <cstdint>

#include "model/primitives/primitive.h"

namespace fuseline {

struct SumSequences {
  static constexpr const char* name = "sum_sequences";
  Value in;
  Operand to;  // [B, N] of a value [B·tokens, N]
  std::int64_t tokens = 0;

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
  friend bool operator==(const SumSequences&, const SumSequences&) = default;
};

}  // namespace fuseline
