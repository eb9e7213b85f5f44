// Values within tiles, in fp32.
#pragma once

#include <cstdint>
#include <vector>

namespace fuseline {

// A value within a tile. One row stands for all rows, one column for all columns; fewer columns
// than the tile has repeat (tables).
struct Matrix {
  std::int64_t rows = 0;
  std::int64_t cols = 0;
  std::vector<float> data{};

  void resize(std::int64_t new_rows, std::int64_t new_cols) {
    rows = new_rows;
    cols = new_cols;
    data.resize(static_cast<std::size_t>(rows * cols));
  }
  [[nodiscard]] float* row(std::int64_t r) { return data.data() + r * cols; }
  [[nodiscard]] const float* row(std::int64_t r) const { return data.data() + r * cols; }
};

// Row r of the matrix with `cols` columns: its own, or its columns repeated into `buffer`.
const float* expanded(const Matrix& m, std::int64_t r, std::int64_t cols,
                      std::vector<float>& buffer);

// In every group of `group` columns of out, `lower` makes the first `lower_cols` and `upper` the
// others.
void concat_halves(const Matrix& lower, const Matrix& upper, std::int64_t group,
                   std::int64_t lower_cols, Matrix& out);

// Terms at the end of a sum that a fault leaves out.
std::int64_t left_out_terms(std::int64_t count);

}  // namespace fuseline
