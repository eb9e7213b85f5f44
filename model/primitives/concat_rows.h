// A tile of rows that come from several operands: in every sequence those of the first, then those
// of the second.
#pragma once

#include <cstdint>
#include <vector>

#include "model/primitives/primitive.h"

namespace fuseline {

// Where a joint row comes from. `rows`: of one sequence of each part.
struct RowsOfParts {
  std::int64_t sequences = 1;
  std::vector<std::int64_t> rows{};

  struct Place {
    std::size_t part = 0;
    std::int64_t row = 0;
  };
  [[nodiscard]] std::int64_t all() const;  // of all parts and sequences
  [[nodiscard]] Place place(std::int64_t joint_row) const;
};

struct ConcatRows {
  static constexpr const char* name = "concat_rows";
  Value out;
  std::vector<Operand> parts;
  std::int64_t sequences = 1;

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
  friend bool operator==(const ConcatRows&, const ConcatRows&) = default;

 private:
  [[nodiscard]] RowsOfParts rows() const;
};

}  // namespace fuseline
