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

// join_pairs and pairs_gradient visit the pairs of one kind of value: here those of fragments, in
// stream/pair.cuh those of streams. The functions of pairs below are written once for both.
template <int each, int groups, class F>
FUSELINE_HD Fragment<each / 2, groups> join_pairs(const Fragment<each, groups>& pairs, F&& f) {
  static_assert(each % 2 == 0, "a pair needs two columns in a thread");
  Fragment<each / 2, groups> out;
  for_each_element<Fragment<each / 2, groups>>([&](int h, int g, int e) {
    out.at(h, g, e) = f(pairs.at(h, g, 2 * e), pairs.at(h, g, 2 * e + 1));
  });
  return out;
}

// Of one pair (gate, up): the gradient by each, and what they are joined to.
struct PairGradient {
  float gate, up, again;
};
template <class Pairs, class Joined>
struct PairsGradient {
  Pairs pairs;   // with respect to (gate, up)
  Joined again;  // what they are joined to, computed again for the weight's gradient
};

template <int each, int groups, class F>
FUSELINE_HD auto pairs_gradient(const Fragment<2 * each, groups>& pairs,
                                const Fragment<each, groups>& d, F&& f) {
  PairsGradient<Fragment<2 * each, groups>, Fragment<each, groups>> out;
  for_each_element<Fragment<each, groups>>([&](int h, int g, int e) {
    const PairGradient of = f(pairs.at(h, g, 2 * e), pairs.at(h, g, 2 * e + 1), d.at(h, g, e));
    out.pairs.at(h, g, 2 * e) = of.gate;
    out.pairs.at(h, g, 2 * e + 1) = of.up;
    out.again.at(h, g, e) = of.again;
  });
  return out;
}

// Pairs (gate, up): silu(gate) · up.
template <class Pairs>
FUSELINE_HD auto swiglu(const Pairs& pairs) {
  return join_pairs(pairs, [](float gate, float up) { return gate * sigmoid_of(gate) * up; });
}
// s = sigmoid(gate), t = gate s: d_up = d t, d_gate = d up (s + t (1 - s)).
template <class Pairs, class D>
FUSELINE_HD auto swiglu_backward(const Pairs& pairs, const D& d) {
  return pairs_gradient(pairs, d, [](float gate, float up, float dy) {
    const float s = sigmoid_of(gate);
    const float t = gate * s;
    return PairGradient{dy * up * (s + t * (1.0F - s)), dy * t, t * up};
  });
}

}  // namespace fuseline::gpu
