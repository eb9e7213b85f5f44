// The sum of every `group` columns of a row, such as a head's, at each of these columns.
#pragma once

#include <cstdint>

#include "model/primitives/primitive.h"
#include "model/primitives/reduce_function.h"

namespace fuseline {

struct GroupReduce {
  static constexpr const char* name = "group_reduce";
  Value out;
  ReduceFn fn;  // of one number, not divided
  Value in;
  std::int64_t group = 0;

  [[nodiscard]] std::vector<Value> uses() const;
  [[nodiscard]] std::vector<Value> defines() const;
  [[nodiscard]] std::vector<Access> accesses() const;
  [[nodiscard]] std::vector<ValueShape> results(const ValueShapes& made, std::int64_t heads) const;
  [[nodiscard]] std::vector<ColumnRelation> relations() const;
  [[nodiscard]] TileDemands demands() const;
  // A step of the sum, and a share of the shuffles; counted as maps are (map_function.h).
  [[nodiscard]] double instructions() const { return 1.5; }
  bool check(ShapeCheck& check) const;
  [[nodiscard]] CodeLine text(const ProgramNames& names) const;
  void evaluate(TileContext& tile) const;
  void epilogue(EpilogueCode& code) const;
  void stream(StreamCode& code) const;
  friend bool operator==(const GroupReduce&, const GroupReduce&) = default;
};

}  // namespace fuseline
