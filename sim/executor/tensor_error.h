// How far an executed tensor is from fp64.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "sim/executor/storage.h"

namespace fuseline::executor {

struct TensorError {
  double relative_l2 = 0;  // ‖got - want‖₂ / ‖want‖₂
  double largest = 0;      // max |got - want|
  // The worst 128 × 128 tile: its root mean square error over the whole tensor's root mean square.
  // A fault in one tile of many shows here.
  double worst_tile = 0;
  // Row and column of the first NaN or infinity; then the errors are infinite.
  std::optional<std::pair<std::int64_t, std::int64_t>> not_finite;
  bool all_equal = false;  // more than one element, all the same: never right
};

// Columns [begin, begin + cols) of `got` against `want`, which has the size of the whole tensor.
TensorError compare(const Storage& got, const std::vector<double>& want, std::int64_t col_begin,
                    std::int64_t cols);

}  // namespace fuseline::executor
