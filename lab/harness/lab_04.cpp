#include "harness.h"

void epilogue(const fuseline_lab::Accumulator& tile, const fuseline_lab::Source& mean_square,
              const fuseline_lab::Source& residual, const fuseline_lab::Target& result, float eps);

// A GEMM's mainloop hands out its result tile by tile.
void fuseline_lab::run_case() {
  const Target result = target("result");
  const std::int64_t edge = size("tile");
  for (std::int64_t row = 0; row < result.rows(); row += edge) {
    for (std::int64_t col = 0; col < result.cols(); col += edge) {
      const std::int64_t rows = edge < result.rows() - row ? edge : result.rows() - row;
      const std::int64_t cols = edge < result.cols() - col ? edge : result.cols() - col;
      epilogue(tile(row, col, rows, cols), source("mean_square"), source("residual"), result,
               static_cast<float>(constant("eps")));
    }
  }
}
