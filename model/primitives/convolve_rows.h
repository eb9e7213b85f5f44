// A causal convolution along the tokens of each sequence, every column by itself: row b·T + t of
// the result is Σ_j weight[j] · from[b·T + t - (K - 1) + j], j = 0 .. K - 1. Rows before a sequence
// are the K - 1 rows that `before` has for it, or zero. A tile loads its own rows and, of its
// sequence, up to K - 1 rows above them.
#pragma once

#include <optional>

#include "model/operators/attributes.h"
#include "model/primitives/primitive.h"

namespace fuseline {

struct ConvolveRows {
  static constexpr const char* name = "convolve_rows";
  Value out;
  Operand from;                   // [B·T, C]
  Operand weight;                 // [K, C], row K - 1 is that of the token itself
  std::optional<Operand> before;  // [B·(K - 1), C], the rows ahead of each sequence, in their order
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
  friend bool operator==(const ConvolveRows&, const ConvolveRows&) = default;
};

}  // namespace fuseline
