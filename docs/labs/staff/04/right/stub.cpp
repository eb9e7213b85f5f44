#include <cmath>
#include <cstdint>

#include "fuseline_lab.h"

using fuseline_lab::Accumulator;
using fuseline_lab::Source;
using fuseline_lab::Target;

void epilogue(const Accumulator& tile, const Source& mean_square, const Source& residual,
              const Target& result, float eps) {
  for (std::int64_t i = 0; i < tile.rows; ++i) {
    const std::int64_t row = tile.first_row + i;
    const float scale = 1 / std::sqrt(mean_square.load(row, 0) + eps);
    for (std::int64_t j = 0; j < tile.cols; ++j) {
      const std::int64_t col = tile.first_col + j;
      result.store(row, col, residual.load(row, col) + tile.at(i, j) * scale);
    }
  }
}
