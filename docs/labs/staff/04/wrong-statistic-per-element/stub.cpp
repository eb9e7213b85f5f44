#include <cmath>
#include <cstdint>

#include "fuseline_lab.h"

using fuseline_lab::Accumulator;
using fuseline_lab::Source;
using fuseline_lab::Target;

// Loads the row's statistic in the inner loop.
void epilogue(const Accumulator& tile, const Source& mean_square, const Source& residual,
              const Target& result, float eps) {
  for (std::int64_t i = 0; i < tile.rows; ++i) {
    const std::int64_t row = tile.first_row + i;
    for (std::int64_t j = 0; j < tile.cols; ++j) {
      const std::int64_t col = tile.first_col + j;
      const float scale = 1 / std::sqrt(mean_square.load(row, 0) + eps);
      result.store(row, col, residual.load(row, col) + tile.at(i, j) * scale);
    }
  }
}
