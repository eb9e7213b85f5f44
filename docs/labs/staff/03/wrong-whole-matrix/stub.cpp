#include <cmath>
#include <cstdint>
#include <vector>

#include "fuseline_lab.h"

using fuseline_lab::Source;
using fuseline_lab::Target;

// Keeps every row on chip, where there is room for one.
void add_rms_norm(const Source& x, const Source& branch, const Source& weight, const Target& sum,
                  const Target& normed, float eps) {
  const std::int64_t rows = x.rows();
  const std::int64_t cols = x.cols();
  std::vector<float> values;
  for (std::int64_t i = 0; i < rows; ++i) {
    for (std::int64_t j = 0; j < cols; ++j) {
      values.push_back(x.load(i, j) + branch.load(i, j));
      sum.store(i, j, values.back());
    }
  }
  for (std::int64_t i = 0; i < rows; ++i) {
    const float* row = values.data() + i * cols;
    float squares = 0;
    for (std::int64_t j = 0; j < cols; ++j) squares += row[j] * row[j];
    const float scale = 1 / std::sqrt(squares / static_cast<float>(cols) + eps);
    for (std::int64_t j = 0; j < cols; ++j) {
      normed.store(i, j, row[j] * scale * weight.load(0, j));
    }
  }
}
