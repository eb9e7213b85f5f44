// Maps over pairs of columns c and c + distance. Within one thread: adjacent columns (distance 1),
// or units 2 i and 2 i + 1 of a PairPlace. At any other place the thread computes its columns'
// partners too.
#pragma once

#include "../element.cuh"
#include "../epilogue/pair.cuh"
#include "map.cuh"
#include "place.cuh"

namespace fuseline::gpu::stream {

// The value at the other column of the pair, and whether a column is the second of its pair.
template <bool adjacent, int units>
FUSELINE_HD float partner(const Strip<units>& x, int u, int e) {
  return adjacent ? x.at(u, e ^ 1) : x.at(u ^ 1, e);
}
template <bool adjacent>
FUSELINE_HD bool is_second(int u, int e) {
  return (adjacent ? e : u) % 2 != 0;
}

// Rotates (x1, x2): x1 cos - x2 sin, x2 cos + x1 sin, each with the angle at its own column.
template <bool adjacent, int units, class Angles>
FUSELINE_HD Strip<units> rope(const Strip<units>& x, const Angles& cos, const Angles& sin) {
  Strip<units> out;
  for_each<Strip<units>>([&](int u, int e) {
    const float turn = sin.at(u, e) * partner<adjacent>(x, u, e);
    out.at(u, e) = x.at(u, e) * cos.at(u, e) + (is_second<adjacent>(u, e) ? turn : -turn);
  });
  return out;
}
// The transposed rotation: the partner's sine is taken.
template <bool adjacent, int units, class Angles>
FUSELINE_HD Strip<units> rope_inverse(const Strip<units>& x, const Angles& cos, const Angles& sin) {
  const Strip<units> turn = mul(x, sin);
  Strip<units> out;
  for_each<Strip<units>>([&](int u, int e) {
    const float by = partner<adjacent>(turn, u, e);
    out.at(u, e) = x.at(u, e) * cos.at(u, e) + (is_second<adjacent>(u, e) ? -by : by);
  });
  return out;
}

// The same at any place: x, cos and sin compute a place's values. Pairs are the first 2 · distance
// columns of every `head`; the others meet sine 0 and are their own partners.
template <int distance, bool inverse, int head = 2 * distance, class Place, class X, class Cos,
          class Sin>
FUSELINE_DEVICE Strip<Place::units> rope_apart(const Place& place, X&& x, Cos&& cos, Sin&& sin) {
  constexpr bool together = distance % vector_cols == 0 && head % vector_cols == 0;
  const auto second = [](int c) { return c % head >= distance; };
  const auto partner_of = [&](int c) {
    if (c % head >= 2 * distance) return c;
    return second(c) ? c - distance : c + distance;
  };
  const auto turned = [&](const auto& there) {
    if constexpr (inverse) {
      return mul(x(there), sin(there));
    } else {
      return x(there);
    }
  };
  const auto other = value_elsewhere<together>(place, place.cols, partner_of, turned);
  const auto own = x(place);
  const auto c = cos(place);
  const auto s = sin(place);
  Strip<Place::units> out;
  for_each<Strip<Place::units>>([&](int u, int e) {
    const float by = inverse ? other.at(u, e) : s.at(u, e) * other.at(u, e);
    out.at(u, e) = own.at(u, e) * c.at(u, e) + (second(place.col(u) + e) != inverse ? by : -by);
  });
  return out;
}

// How the functions of adjacent pairs of epilogue/pair.cuh go over streams' values.
template <int units, int width, class F>
FUSELINE_HD Strip<units, width / 2> join_pairs(const Strip<units, width>& pairs, F&& f) {
  Strip<units, width / 2> out;
  for_each<Strip<units, width / 2>>(
      [&](int u, int e) { out.at(u, e) = f(pairs.at(u, 2 * e), pairs.at(u, 2 * e + 1)); });
  return out;
}
template <int units, int width, class F>
FUSELINE_HD auto pairs_gradient(const Strip<units, 2 * width>& pairs, const Strip<units, width>& d,
                                F&& f) {
  PairsGradient<Strip<units, 2 * width>, Strip<units, width>> out;
  for_each<Strip<units, width>>([&](int u, int e) {
    const PairGradient of = f(pairs.at(u, 2 * e), pairs.at(u, 2 * e + 1), d.at(u, e));
    out.pairs.at(u, 2 * e) = of.gate;
    out.pairs.at(u, 2 * e + 1) = of.up;
    out.again.at(u, e) = of.again;
  });
  return out;
}

}  // namespace fuseline::gpu::stream
