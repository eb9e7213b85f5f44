// The arithmetic of primitives on tiles, in fp32.
#pragma once

#include <cstdint>
#include <vector>

#include "model/primitives/functions.h"

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

// out[r, c] = fn(a[r, c], b[r, c]) over out's rows and columns; `b` is not used by unary functions.
void apply_map(MapFn fn, float constant, const Matrix& a, const Matrix* b, Matrix& out);

// Pairs are columns c and c + distance of the first 2·distance of every `group`. Column c of x meets column c
// mod table.cols of the tables; each column has its own angle.
//   y[a] = x[a] cos[a] - x[b] sin[a],  y[b] = x[b] cos[b] + x[a] sin[b];  inverse: the transpose
void apply_rope(const Matrix& x, const Matrix& cos, const Matrix& sin, std::int64_t distance,
                std::int64_t group, bool inverse, Matrix& out);
// out = g·sigmoid(g)·u for pairs (g, u)
void apply_swiglu(const Matrix& pairs, std::int64_t distance, Matrix& out);
// From pairs (g, u) and the gradient d of out: d_pairs = (d·u·(s + t(1-s)), d·t), out = t·u, with s
// = sigmoid(g), t = g·s.
void apply_swiglu_backward(const Matrix& pairs, const Matrix& d, std::int64_t distance,
                           Matrix& d_pairs, Matrix& out);

// In every group of `group` columns of out, `lower` makes the first `lower_cols` and `upper` the
// others.
void concat_halves(const Matrix& lower, const Matrix& upper, std::int64_t group,
                   std::int64_t lower_cols, Matrix& out);

// Reduces `count` numbers in a fixed order: sixteen running sums, then these in pairs.
float reduce(ReduceFn fn, const float* values, std::int64_t count);

}  // namespace fuseline
