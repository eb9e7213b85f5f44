// The angles of a table of cos or sin, where values for it are made.
#pragma once

#include <cstdint>

#include "model/graph.h"

namespace fuseline {

// Columns that turn together have one angle. They are neighbours where a rotation of the graph
// reads the table for adjacent pairs, else the table's halves: a rotation could not be undone with
// a table made for the other kind.
class RotationAngles {
 public:
  RotationAngles(const Graph& graph, TensorId table);
  // (row + 1)·10000^(-p / pairs) for the pair p of the column.
  [[nodiscard]] double at(std::int64_t row, std::int64_t col) const;

 private:
  std::int64_t pairs_ = 1;
  bool adjacent_ = false;
};

}  // namespace fuseline
