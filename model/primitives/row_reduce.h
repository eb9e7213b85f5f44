// Whole-row reduction inside a row mainloop: the row is resident, the result is a vector along
// rows.
#pragma once

#include "model/primitives/primitive.h"
#include "model/primitives/reduce_function.h"

namespace fuseline {

struct RowReduce {
  static constexpr const char* name = "row_reduce";
  Value out;
  ReduceFn fn;
  Value in;

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
  friend bool operator==(const RowReduce&, const RowReduce&) = default;
};

}  // namespace fuseline
