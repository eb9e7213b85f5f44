// How far an executed tensor is from fp64.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "sim/executor/column_order.h"
#include "sim/executor/storage.h"

namespace fuseline::executor {

struct TensorError {
  double relative_l2 = 0;  // ‖got - want‖₂ / ‖want‖₂
  double largest = 0;      // max |got - want|
  // The worst 128 × 128 tile: its root mean square error over the whole tensor's root mean square.
  // A fault in one tile of many shows here. Narrow rests at the edges belong to their neighbours;
  // tiles of fewer than 1,024 elements do not count, and a tensor without others has its relative
  // L2 error here.
  double worst_tile = 0;
  // How many numbers carry the wanted norm: (Σ want²)² / Σ want⁴, all for equal magnitudes, few
  // when outliers dominate.
  double numbers = 0;
  // Row and column of the first NaN or infinity; then the errors are infinite.
  std::optional<std::pair<std::int64_t, std::int64_t>> not_finite{};
  bool all_equal = false;       // more than one element, all the same, and others are wanted
  bool nothing_wanted = false;  // all zeros are: there is nothing to compare with
};

// Columns [begin, begin + cols) of `got` against `want`, which has the size of the whole tensor;
// `order`: where in `want` the elements of `got` are.
TensorError compare(const Storage& got, const std::vector<double>& want, std::int64_t col_begin,
                    std::int64_t cols, const TensorOrder& order = {});

}  // namespace fuseline::executor
