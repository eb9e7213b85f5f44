// Element-wise loops and pairs of columns; shared by the reference functions.
#pragma once

#include <cmath>
#include <cstdint>

#include "model/graph.h"
#include "model/operators/attributes.h"
#include "model/operators/support/view.h"

namespace fuseline::reference {

inline double sigmoid(double x) { return 1.0 / (1.0 + std::exp(-x)); }

// GELU in its tanh form, and its derivative.
inline double gelu(double x) {
  constexpr double kScale = 0.7978845608028654;  // sqrt(2/π)
  return 0.5 * x * (1.0 + std::tanh(kScale * (x + 0.044715 * x * x * x)));
}
inline double gelu_slope(double x) {
  constexpr double kScale = 0.7978845608028654;
  const double h = std::tanh(kScale * (x + 0.044715 * x * x * x));
  const double slope = kScale * (1.0 + 3.0 * 0.044715 * x * x);
  return 0.5 * (1.0 + h) + 0.5 * x * (1.0 - h * h) * slope;
}

template <class F>
void map(const Graph& g, const Op& op, const TensorValues& in, TensorValues& out, F f) {
  const View<const double> x = read(g, in, op.reads[0]);
  const View<double> y = write(g, out, op.writes[0]);
  for (std::int64_t m = 0; m < y.rows; ++m)
    for (std::int64_t n = 0; n < y.cols; ++n) y(m, n) = f(x(m, n));
}

// The second operand is as large as the first, or repeats along rows and columns: a row vector [1,
// N], a column vector [M, 1], a table [T, d].
template <class F>
void map2(const Graph& g, const Op& op, const TensorValues& in, TensorValues& out, F f) {
  const View<const double> x = read(g, in, op.reads[0]);
  const View<const double> z = read(g, in, op.reads[1]);
  const View<double> y = write(g, out, op.writes[0]);
  for (std::int64_t m = 0; m < y.rows; ++m)
    for (std::int64_t n = 0; n < y.cols; ++n) y(m, n) = f(x(m, n), z(m % z.rows, n % z.cols));
}

// Columns of the pair that column `first` of a head of width d starts.
struct Pair {
  std::int64_t a, b;
};
inline Pair pair_of(const Pairs& pairs, std::int64_t j, std::int64_t half) {
  return pairs.interleaved ? Pair{2 * j, 2 * j + 1} : Pair{j, j + half};
}

}  // namespace fuseline::reference
