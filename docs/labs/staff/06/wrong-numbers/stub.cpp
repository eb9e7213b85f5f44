#include <algorithm>
#include <cstdint>
#include <vector>

#include "fuseline_lab.h"

using fuseline_lab::Source;
using fuseline_lab::Target;

namespace {

std::size_t at(std::int64_t index) { return static_cast<std::size_t>(index); }

}  // namespace

void gemm(const Source& a, const Source& b, const Target& c, std::int64_t tile_m,
          std::int64_t tile_n, std::int64_t tile_k) {
  std::vector<float> panel_a(at(tile_m * tile_k));
  std::vector<float> panel_b(at(tile_n * tile_k));
  std::vector<float> sums(at(tile_m * tile_n));
  for (std::int64_t row = 0; row < a.rows(); row += tile_m) {
    for (std::int64_t col = 0; col < b.rows(); col += tile_n) {
      const std::int64_t rows = std::min(tile_m, a.rows() - row);
      const std::int64_t cols = std::min(tile_n, b.rows() - col);
      std::fill(sums.begin(), sums.end(), 0.0F);
      for (std::int64_t step = 0; step < a.cols(); step += tile_k) {
        const std::int64_t depth = std::min(tile_k, a.cols() - step);
        for (std::int64_t i = 0; i < rows; ++i) {
          for (std::int64_t k = 0; k < depth; ++k) {
            panel_a[at(i * tile_k + k)] = a.load(row + i, step + k);
          }
        }
        for (std::int64_t j = 0; j < cols; ++j) {
          for (std::int64_t k = 0; k < depth; ++k) {
            panel_b[at(j * tile_k + k)] = b.load(col + j, step + k);
          }
        }
        for (std::int64_t i = 0; i < rows; ++i) {
          for (std::int64_t j = 0; j < cols; ++j) {
            float& sum = sums[at(i * tile_n + j)];
            for (std::int64_t k = 0; k < depth; ++k) {
              sum += panel_a[at(i * tile_k + k)] * panel_b[at(j * tile_k + k)];
            }
          }
        }
      }
      for (std::int64_t i = 0; i < rows; ++i) {
        for (std::int64_t j = 0; j < cols; ++j) {
          c.store(row + i, col + j, sums[at(i * tile_n + j)]);
        }
      }
    }
  }
}
