#include "model/primitives/tile_maths.h"

#include <algorithm>

#include "base/error.h"

namespace fuseline {

const float* expanded(const Matrix& m, std::int64_t r, std::int64_t cols,
                      std::vector<float>& buffer) {
  const float* row = m.row(m.rows == 1 ? 0 : r);
  if (m.cols == cols) return row;
  buffer.resize(static_cast<std::size_t>(cols));
  for (std::int64_t c = 0; c < cols; c += m.cols)
    std::copy_n(row, std::min(m.cols, cols - c), buffer.data() + c);
  return buffer.data();
}

void concat_halves(const Matrix& lower, const Matrix& upper, std::int64_t group,
                   std::int64_t lower_cols, Matrix& out) {
  const std::int64_t upper_cols = group - lower_cols;
  FUSELINE_ASSERT(out.cols % group == 0, "a tile cuts a group of columns");
  for (std::int64_t r = 0; r < out.rows; ++r) {
    for (std::int64_t g = 0; g < out.cols / group; ++g) {
      std::copy_n(lower.row(r) + g * lower_cols, lower_cols, out.row(r) + g * group);
      std::copy_n(upper.row(r) + g * upper_cols, upper_cols, out.row(r) + g * group + lower_cols);
    }
  }
}

std::int64_t left_out_terms(std::int64_t count) {
  return std::clamp<std::int64_t>(count / 16, 1, 128);
}

}  // namespace fuseline
