// What the fast fp64 reference reads: computed values, or given ones in their storage types.
#pragma once

#include <cstdint>
#include <vector>

#include "model/graph.h"
#include "model/reference.h"
#include "sim/executor/storage.h"

namespace fuseline::executor {

// One operand. Given tensors become doubles piece by piece, so that the largest weights never are
// in memory as fp64.
class Source {
 public:
  // The arguments must outlive the object. InputError when nobody computed or gave the tensor.
  Source(const Graph& graph, const TensorValues& values, const Inputs& inputs, const Operand& o);

  // Rows [row, row + rows) × columns [col, col + cols) of the operand, contiguous.
  void copy(std::int64_t row, std::int64_t rows, std::int64_t col, std::int64_t cols,
            std::vector<double>& to) const;

 private:
  Operand operand_;
  const double* computed_ = nullptr;
  const Storage* stored_ = nullptr;
  std::int64_t stride_ = 0;
};

}  // namespace fuseline::executor
