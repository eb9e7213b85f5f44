// Functions of two numbers, applied to the pairs of columns of tiles: what the pair maps of pairs/
// are made with.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "base/error.h"
#include "model/primitives/pair_function.h"
#include "model/primitives/tile_maths.h"

namespace fuseline {

struct PairOfNumbers {
  float first = 0, second = 0;
};
struct GradientOfPair {
  float gate = 0, up = 0;  // by the two columns
  float again = 0;         // what they are joined to
};

// Calls f(first column of the pair, second, column of what they are joined to) for all pairs.
template <class F>
void each_pair(std::int64_t cols, std::int64_t distance, std::int64_t step, F f) {
  FUSELINE_ASSERT(distance >= 1 && 2 * distance <= step && cols % step == 0, "a tile cuts a pair");
  for (std::int64_t group = 0; group < cols; group += step)
    for (std::int64_t j = 0; j < distance; ++j) f(group + j, group + j + distance, group / 2 + j);
}

// f(x, cos, sin) turns a pair; each column has its own angle. Column c of the pairs meets column c
// mod the tables' columns.
template <class F>
constexpr PairMaths rotated_by(F) {
  return {
      PairForm::rotated, [](const PairTiles& t) {
        std::vector<float> buffer_cos;
        std::vector<float> buffer_sin;
        for (std::int64_t r = 0; r < t.out.rows; ++r) {
          const float* x = t.pairs.row(r);
          float* y = t.out.row(r);
          const float* c = expanded(*t.second, r, t.pairs.cols, buffer_cos);
          const float* s = expanded(*t.third, r, t.pairs.cols, buffer_sin);
          if (t.group > 2 * t.distance) std::copy_n(x, t.pairs.cols, y);
          each_pair(t.pairs.cols, t.distance, t.group, [&](std::int64_t a, std::int64_t b, auto) {
            const PairOfNumbers turned = F{}(PairOfNumbers{x[a], x[b]}, PairOfNumbers{c[a], c[b]},
                                             PairOfNumbers{s[a], s[b]});
            y[a] = turned.first;
            y[b] = turned.second;
          });
        }
      }};
}

// f(gate, up) is what a pair is joined to.
template <class F>
constexpr PairMaths joined_by(F) {
  return {PairForm::joined, [](const PairTiles& t) {
            for (std::int64_t r = 0; r < t.out.rows; ++r) {
              const float* x = t.pairs.row(r);
              float* y = t.out.row(r);
              each_pair(t.pairs.cols, t.distance, t.group,
                        [&](std::int64_t gate, std::int64_t up, std::int64_t to) {
                          y[to] = F{}(x[gate], x[up]);
                        });
            }
          }};
}

// f(gate, up, d) is the gradient of a pair, given d, that of what it is joined to.
template <class F>
constexpr PairMaths gradient_by(F) {
  return {PairForm::gradient, [](const PairTiles& t) {
            for (std::int64_t r = 0; r < t.out.rows; ++r) {
              const float* x = t.pairs.row(r);
              const float* d = t.second->row(r);
              float* dx = t.out.row(r);
              float* y = t.again->row(r);
              each_pair(t.pairs.cols, t.distance, t.group,
                        [&](std::int64_t gate, std::int64_t up, std::int64_t to) {
                          const GradientOfPair g = F{}(x[gate], x[up], d[to]);
                          dx[gate] = g.gate;
                          dx[up] = g.up;
                          y[to] = g.again;
                        });
            }
          }};
}

}  // namespace fuseline
