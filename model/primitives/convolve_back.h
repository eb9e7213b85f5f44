// The adjoint of ConvolveRows in its operand: the same window, ahead of each row instead of behind
// it. Row t of a sequence is the sum over j of w[j] · dy[t + (K - 1) - j], of the rows that the
// sequence has.
#pragma once

#include "model/operators/attributes.h"
#include "model/primitives/primitive.h"

namespace fuseline {

struct ConvolveBack {
  static constexpr const char* name = "convolve_back";
  Value out;
  Operand from;    // dy [B·T, N]
  Operand weight;  // [K, N]
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
  friend bool operator==(const ConvolveBack&, const ConvolveBack&) = default;
};

}  // namespace fuseline
