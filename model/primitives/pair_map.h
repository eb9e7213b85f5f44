// A function of pairs of columns. Columns c and c + distance form a pair: 1 = adjacent, the only
// distance that a GEMM tile can promise. A stream or row kernel loads both columns itself, so rope
// may have distance d/2 there.
#pragma once

#include <cstdint>
#include <vector>

#include "model/primitives/pair_function.h"
#include "model/primitives/primitive.h"

namespace fuseline {

struct PairMap {
  static constexpr const char* name = "pair_map";
  std::vector<Value> out;
  PairFn fn;
  std::vector<Value> in;
  std::int64_t distance = 1;
  // Pairs are the first 2·distance columns of every so many, the others are kept; 0: all columns.
  std::int64_t head = 0;

  [[nodiscard]] std::int64_t group() const { return head > 0 ? head : 2 * distance; }
  [[nodiscard]] PairForm form() const;
  [[nodiscard]] bool rotates() const { return form() == PairForm::rotated; }
  void rotate(StreamCode& code) const;  // the device code of a rotation

  [[nodiscard]] std::vector<Value> uses() const;
  [[nodiscard]] std::vector<Value> defines() const;
  [[nodiscard]] std::vector<Access> accesses() const;
  [[nodiscard]] std::vector<ValueShape> results(const ValueShapes& made, std::int64_t heads) const;
  [[nodiscard]] std::vector<ColumnRelation> relations() const;
  [[nodiscard]] TileDemands demands() const;
  [[nodiscard]] double instructions() const { return fn->instructions; }
  bool check(ShapeCheck& check) const;
  [[nodiscard]] CodeLine text(const ProgramNames& names) const;
  void evaluate(TileContext& tile) const;
  void epilogue(EpilogueCode& code) const;
  void stream(StreamCode& code) const;
  friend bool operator==(const PairMap&, const PairMap&) = default;
};

}  // namespace fuseline
