#include "model/primitives/tile_maths.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "base/error.h"

namespace fuseline {

namespace {

float sigmoid(float x) { return 1.0F / (1.0F + std::exp(-x)); }

float gelu_tanh(float x) {
  constexpr float kScale = 0.7978845608F;  // sqrt(2/π)
  return 0.5F * x * (1.0F + std::tanh(kScale * (x + 0.044715F * x * x * x)));
}

float gelu_tanh_slope(float x) {
  constexpr float kScale = 0.7978845608F;  // sqrt(2/π)
  const float t = std::tanh(kScale * (x + 0.044715F * x * x * x));
  return 0.5F * (1.0F + t) + 0.5F * x * (1.0F - t * t) * kScale * (1.0F + 0.134145F * x * x);
}

// Row r of the matrix with `cols` columns: its own, or repeated into `buffer`.
const float* expanded(const Matrix& m, std::int64_t r, std::int64_t cols,
                      std::vector<float>& buffer) {
  const float* row = m.row(m.rows == 1 ? 0 : r);
  if (m.cols == cols) return row;
  buffer.resize(static_cast<std::size_t>(cols));
  for (std::int64_t c = 0; c < cols; c += m.cols)
    std::copy_n(row, std::min(m.cols, cols - c), buffer.data() + c);
  return buffer.data();
}

template <class F>
void unary(const Matrix& a, Matrix& out, F f) {
  std::vector<float> buffer;
  for (std::int64_t r = 0; r < out.rows; ++r) {
    const float* x = expanded(a, r, out.cols, buffer);
    float* y = out.row(r);
    for (std::int64_t c = 0; c < out.cols; ++c) y[c] = f(x[c]);
  }
}

template <class F>
void binary(const Matrix& a, const Matrix& b, Matrix& out, F f) {
  std::vector<float> buffer_a;
  std::vector<float> buffer_b;
  for (std::int64_t r = 0; r < out.rows; ++r) {
    const float* x = expanded(a, r, out.cols, buffer_a);
    float* y = out.row(r);
    if (b.cols == 1) {
      const float z = b.row(b.rows == 1 ? 0 : r)[0];
      for (std::int64_t c = 0; c < out.cols; ++c) y[c] = f(x[c], z);
      continue;
    }
    const float* z = expanded(b, r, out.cols, buffer_b);
    for (std::int64_t c = 0; c < out.cols; ++c) y[c] = f(x[c], z[c]);
  }
}

// Calls f(row pointers..., first column of the pair, second) for every pair of every group.
template <class F>
void for_each_pair(std::int64_t cols, std::int64_t distance, std::int64_t step, F f) {
  FUSELINE_ASSERT(distance >= 1 && 2 * distance <= step && cols % step == 0, "a tile cuts a pair");
  for (std::int64_t group = 0; group < cols; group += step)
    for (std::int64_t j = 0; j < distance; ++j) f(group + j, group + j + distance, group / 2 + j);
}
template <class F>
void for_each_pair(std::int64_t cols, std::int64_t distance, F f) {
  for_each_pair(cols, distance, 2 * distance, f);
}

template <class Step>
float lanes(const float* values, std::int64_t count, float start, Step step,
            float (*join)(float, float)) {
  constexpr std::int64_t kLanes = 16;
  std::array<float, kLanes> sums;
  sums.fill(start);
  std::int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes)
    for (std::int64_t l = 0; l < kLanes; ++l)
      sums[static_cast<std::size_t>(l)] = step(sums[static_cast<std::size_t>(l)], values[i + l]);
  for (std::int64_t l = 0; i + l < count; ++l)
    sums[static_cast<std::size_t>(l)] = step(sums[static_cast<std::size_t>(l)], values[i + l]);
  for (std::size_t half = kLanes / 2; half > 0; half /= 2)
    for (std::size_t l = 0; l < half; ++l) sums[l] = join(sums[l], sums[l + half]);
  return sums[0];
}

}  // namespace

void apply_map(MapFn fn, float constant, const Matrix& a, const Matrix* b, Matrix& out) {
  switch (fn) {
    case MapFn::add:
      return binary(a, *b, out, [](float x, float z) { return x + z; });
    case MapFn::sub:
      return binary(a, *b, out, [](float x, float z) { return x - z; });
    case MapFn::mul:
      return binary(a, *b, out, [](float x, float z) { return x * z; });
    case MapFn::scale_by_constant:
      return unary(a, out, [constant](float x) { return x * constant; });
    case MapFn::add_constant:
      return unary(a, out, [constant](float x) { return x + constant; });
    case MapFn::square:
      return unary(a, out, [](float x) { return x * x; });
    case MapFn::rsqrt:
      return unary(a, out, [](float x) { return 1.0F / std::sqrt(x); });
    case MapFn::silu:
      return unary(a, out, [](float x) { return x * sigmoid(x); });
    case MapFn::sigmoid:
      return unary(a, out, sigmoid);
    case MapFn::gelu_tanh:
      return unary(a, out, gelu_tanh);
    case MapFn::negate:
      return unary(a, out, [](float x) { return -x; });
    case MapFn::copy:
      return unary(a, out, [](float x) { return x; });
    case MapFn::exp:
      return unary(a, out, [](float x) { return std::exp(x); });
    case MapFn::reciprocal:
      return unary(a, out, [](float x) { return 1.0F / x; });
    case MapFn::log:
      return unary(a, out, [](float x) { return std::log(x); });
    case MapFn::gelu_tanh_slope:
      return unary(a, out, gelu_tanh_slope);
  }
  FUSELINE_ASSERT(false, "unknown map");
}

void apply_rope(const Matrix& x, const Matrix& cos, const Matrix& sin, std::int64_t distance,
                std::int64_t group, bool inverse, Matrix& out) {
  std::vector<float> buffer_cos;
  std::vector<float> buffer_sin;
  for (std::int64_t r = 0; r < out.rows; ++r) {
    const float* in = x.row(r);
    float* y = out.row(r);
    const float* c = expanded(cos, r, x.cols, buffer_cos);
    const float* s = expanded(sin, r, x.cols, buffer_sin);
    if (group > 2 * distance) std::copy_n(in, x.cols, y);
    if (inverse) {
      for_each_pair(x.cols, distance, group, [&](std::int64_t a, std::int64_t b, std::int64_t) {
        y[a] = in[a] * c[a] + in[b] * s[b];
        y[b] = in[b] * c[b] - in[a] * s[a];
      });
    } else {
      for_each_pair(x.cols, distance, group, [&](std::int64_t a, std::int64_t b, std::int64_t) {
        y[a] = in[a] * c[a] - in[b] * s[a];
        y[b] = in[b] * c[b] + in[a] * s[b];
      });
    }
  }
}

void apply_swiglu(const Matrix& pairs, std::int64_t distance, Matrix& out) {
  for (std::int64_t r = 0; r < out.rows; ++r) {
    const float* x = pairs.row(r);
    float* y = out.row(r);
    for_each_pair(pairs.cols, distance, [&](std::int64_t g, std::int64_t u, std::int64_t to) {
      y[to] = x[g] * sigmoid(x[g]) * x[u];
    });
  }
}

void apply_swiglu_backward(const Matrix& pairs, const Matrix& d, std::int64_t distance,
                           Matrix& d_pairs, Matrix& out) {
  for (std::int64_t r = 0; r < out.rows; ++r) {
    const float* x = pairs.row(r);
    const float* gradient = d.row(r);
    float* dx = d_pairs.row(r);
    float* y = out.row(r);
    for_each_pair(pairs.cols, distance, [&](std::int64_t g, std::int64_t u, std::int64_t to) {
      const float s = sigmoid(x[g]);
      const float t = x[g] * s;
      const float up = x[u];
      dx[g] = gradient[to] * up * (s + t * (1.0F - s));
      dx[u] = gradient[to] * t;
      y[to] = t * up;
    });
  }
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

float reduce(ReduceFn fn, const float* values, std::int64_t count) {
  const auto add = [](float a, float b) { return a + b; };
  const auto larger = [](float a, float b) { return a > b ? a : b; };
  switch (fn) {
    case ReduceFn::sum:
      return lanes(
          values, count, 0.0F, [](float s, float v) { return s + v; }, add);
    case ReduceFn::mean:
      return reduce(ReduceFn::sum, values, count) / static_cast<float>(count);
    case ReduceFn::sum_squares:
      return lanes(
          values, count, 0.0F, [](float s, float v) { return s + v * v; }, add);
    case ReduceFn::max:
      return lanes(
          values, count, -std::numeric_limits<float>::infinity(),
          [](float s, float v) { return s > v ? s : v; }, larger);
    case ReduceFn::sum_and_squares:
      break;
  }
  FUSELINE_ASSERT(false, "a reduction to one number");
}

}  // namespace fuseline
