#include <cmath>
#include <cstdint>
#include <vector>

#include "fuseline_lab.h"

using fuseline_lab::Source;
using fuseline_lab::Target;

void add_rms_norm(const Source& x, const Source& branch, const Source& weight, const Target& sum,
                  const Target& normed, float eps) {
  const std::int64_t cols = x.cols();
  std::vector<float> row(static_cast<std::size_t>(cols));
  for (std::int64_t i = 0; i < x.rows(); ++i) {
    float squares = 0;
    for (std::int64_t j = 0; j < cols; ++j) {
      const float value = x.load(i, j) + branch.load(i, j);
      row[static_cast<std::size_t>(j)] = value;
      sum.store(i, j, value);
      squares += value * value;
    }
    const float scale = 1 / std::sqrt(squares / static_cast<float>(cols) + eps);
    for (std::int64_t j = 0; j < cols; ++j) {
      normed.store(i, j, row[static_cast<std::size_t>(j)] * scale * weight.load(0, j));
    }
  }
}
