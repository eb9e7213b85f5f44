#include <cmath>
#include <cstdint>

#include "fuseline_lab.h"

using fuseline_lab::Source;
using fuseline_lab::Target;

// The second loop loads what the first has loaded already.
void add_rms_norm(const Source& x, const Source& branch, const Source& weight, const Target& sum,
                  const Target& normed, float eps) {
  const std::int64_t cols = x.cols();
  for (std::int64_t i = 0; i < x.rows(); ++i) {
    float squares = 0;
    for (std::int64_t j = 0; j < cols; ++j) {
      const float value = x.load(i, j) + branch.load(i, j);
      sum.store(i, j, value);
      squares += value * value;
    }
    const float scale = 1 / std::sqrt(squares / static_cast<float>(cols) + eps);
    for (std::int64_t j = 0; j < cols; ++j) {
      const float value = x.load(i, j) + branch.load(i, j);
      normed.store(i, j, value * scale * weight.load(0, j));
    }
  }
}
