// Maps over pairs of adjacent columns. A pair lies in one thread, so nothing moves between threads:
// rope is 2 -> 2, swiglu 2 -> 1 (the result is half as wide), swiglu_backward 1 -> 2 (twice).
#pragma once

#include "map.cuh"

namespace fuseline::gpu {

// Rotates (x1, x2) by the angle whose cosine and sine stand at the same places of the tables.
template <int each, int groups, class Table>
FUSELINE_HD Fragment<each, groups> rope(const Fragment<each, groups>& x, const Table& cos,
                                        const Table& sin) {
  static_assert(each % 2 == 0, "a pair needs two columns in a thread");
  Fragment<each, groups> out;
  for_each_element<Fragment<each, groups>>([&](int h, int g, int e) {
    const float turn = sin.at(h, g, e) * x.at(h, g, e ^ 1);
    out.at(h, g, e) = x.at(h, g, e) * cos.at(h, g, e) + (e % 2 == 0 ? -turn : turn);
  });
  return out;
}

// The transposed rotation: the partner's sine is taken.
template <int each, int groups, class Table>
FUSELINE_HD Fragment<each, groups> rope_inverse(const Fragment<each, groups>& x, const Table& cos,
                                                const Table& sin) {
  static_assert(each % 2 == 0, "a pair needs two columns in a thread");
  Fragment<each, groups> out;
  for_each_element<Fragment<each, groups>>([&](int h, int g, int e) {
    const float turn = sin.at(h, g, e ^ 1) * x.at(h, g, e ^ 1);
    out.at(h, g, e) = x.at(h, g, e) * cos.at(h, g, e) + (e % 2 == 0 ? turn : -turn);
  });
  return out;
}

// Pairs (gate, up): silu(gate) · up.
template <int each, int groups>
FUSELINE_HD Fragment<each / 2, groups> swiglu(const Fragment<each, groups>& pairs) {
  static_assert(each % 2 == 0, "a pair needs two columns in a thread");
  Fragment<each / 2, groups> out;
  for_each_element<Fragment<each / 2, groups>>([&](int h, int g, int e) {
    const float gate = pairs.at(h, g, 2 * e);
    out.at(h, g, e) = gate * sigmoid_of(gate) * pairs.at(h, g, 2 * e + 1);
  });
  return out;
}

template <int each, int groups>
struct SwigluGradient {
  Fragment<2 * each, groups> pairs;  // with respect to (gate, up)
  Fragment<each, groups> again;      // silu(gate) · up, computed again for the weight's gradient
};

// s = sigmoid(gate), t = gate s: d_up = d t, d_gate = d up (s + t (1 - s)).
template <int each, int groups>
FUSELINE_HD SwigluGradient<each, groups> swiglu_backward(const Fragment<2 * each, groups>& pairs,
                                                         const Fragment<each, groups>& d) {
  SwigluGradient<each, groups> out;
  for_each_element<Fragment<each, groups>>([&](int h, int g, int e) {
    const float gate = pairs.at(h, g, 2 * e);
    const float up = pairs.at(h, g, 2 * e + 1);
    const float s = sigmoid_of(gate);
    const float t = gate * s;
    out.pairs.at(h, g, 2 * e) = d.at(h, g, e) * up * (s + t * (1.0F - s));
    out.pairs.at(h, g, 2 * e + 1) = d.at(h, g, e) * t;
    out.again.at(h, g, e) = t * up;
  });
  return out;
}

}  // namespace fuseline::gpu
