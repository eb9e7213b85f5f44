// A function of one or two values, element by element; rows, columns and tables repeat.
#pragma once

#include <vector>

#include "model/primitives/map_function.h"
#include "model/primitives/primitive.h"

namespace fuseline {

struct Map {
  static constexpr const char* name = "map";
  Value out;
  MapFn fn;
  std::vector<Value> in;
  double constant = 0;

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
  friend bool operator==(const Map&, const Map&) = default;
};

}  // namespace fuseline
