// The adjoint of ConvolveRows in its weight: row j of `to` is, column by column, the sum over all
// rows t of all sequences of dy[t] · x[t - (K - 1) + j]. In a stream whose tiles hold whole
// columns.
#pragma once

#include "model/operators/attributes.h"
#include "model/primitives/primitive.h"

namespace fuseline {

struct SumTaps {
  static constexpr const char* name = "sum_taps";
  Value dy, x;  // [B·T, N] both
  Operand to;   // [K, N]
  ConvolutionShape shape;

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
  friend bool operator==(const SumTaps&, const SumTaps&) = default;
};

}  // namespace fuseline
