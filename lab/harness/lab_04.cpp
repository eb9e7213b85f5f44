#include <algorithm>
#include <vector>

#include "harness.h"

void epilogue(const fuseline_lab::Accumulator& tile, const fuseline_lab::Source& mean_square,
              const fuseline_lab::Source& residual, const fuseline_lab::Target& result, float eps);

// A GEMM's mainloop, tile by tile: the accumulator is what the function gets.
void fuseline_lab::run_case() {
  const Source x = source("x");
  const Source w = source("w");
  const float* const a = values("x");
  const float* const b = values("w");
  const std::int64_t depth = x.cols();
  const std::int64_t edge = size("tile");
  for (std::int64_t row = 0; row < x.rows(); row += edge) {
    for (std::int64_t col = 0; col < w.rows(); col += edge) {
      Accumulator tile{row, col, std::min(edge, x.rows() - row), std::min(edge, w.rows() - col)};
      std::vector<float> sums(static_cast<std::size_t>(tile.rows * tile.cols));
      for (std::int64_t i = 0; i < tile.rows; ++i) {
        for (std::int64_t j = 0; j < tile.cols; ++j) {
          float sum = 0;
          for (std::int64_t k = 0; k < depth; ++k) {
            sum += a[(row + i) * depth + k] * b[(col + j) * depth + k];
          }
          sums[static_cast<std::size_t>(i * tile.cols + j)] = sum;
        }
      }
      tile.values = sums.data();
      const OnChip counted;
      epilogue(tile, source("mean_square"), source("residual"), target("result"),
               static_cast<float>(constant("eps")));
    }
  }
}
