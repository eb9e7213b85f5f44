// Functions of numbers, applied to the elements of tiles: what the maps of maps/ are made with.
#pragma once

#include <cstdint>
#include <vector>

#include "model/primitives/map_function.h"
#include "model/primitives/tile_maths.h"

namespace fuseline {

// f(x) is called for each element.
template <class F>
void each_element(const Matrix& a, Matrix& out, F f) {
  std::vector<float> buffer;
  for (std::int64_t r = 0; r < out.rows; ++r) {
    const float* x = expanded(a, r, out.cols, buffer);
    float* y = out.row(r);
    for (std::int64_t c = 0; c < out.cols; ++c) y[c] = f(x[c]);
  }
}

// f(x, z) is called for each element of two tiles.
template <class F>
void each_two_elements(const Matrix& a, const Matrix& b, Matrix& out, F f) {
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

// The lambdas capture nothing, so that one of their type is each of them.
template <class F>
constexpr MapMaths of_one(F) {
  return {.apply = [](const MapTiles& t) { each_element(t.a, t.out, F{}); }};
}
template <class F>
constexpr MapMaths of_two(F) {
  return {.operands = 2,
          .apply = [](const MapTiles& t) { each_two_elements(t.a, *t.b, t.out, F{}); }};
}
template <class F>
constexpr MapMaths of_one_and_constant(F) {
  return {.constant = true, .apply = [](const MapTiles& t) {
            each_element(t.a, t.out, [c = t.constant](float x) { return F{}(x, c); });
          }};
}

}  // namespace fuseline
