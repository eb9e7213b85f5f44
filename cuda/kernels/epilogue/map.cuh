// Element-wise maps over tiles, row vectors, column vectors and scalars: add(h, x), mul(y, r), ...
// The result has a row (column) index if any argument has one. These are the device
// functions of the maps of model/primitives/maps; a map may bring its own along instead.
#pragma once

#if !defined(__CUDACC__)
#include <cmath>
#endif

#include "../fragment.cuh"

namespace fuseline::gpu {

// exp(x) and 1 / x. On the device these are the hardware's (ex2.approx and rcp.approx), 2 ulp of
// fp32: far below the rounding of a 16-bit result. A result too small for a normal number is 0, and
// so is the reciprocal of one above 2^126 (.ftz): two and one instructions, where those that keep
// such numbers, __expf and __fdividef, take five.
FUSELINE_HD float fast_exp(float x) {
#if defined(__CUDA_ARCH__)
  float out;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(out) : "f"(x * 1.44269504F));  // 1 / ln(2)
  return out;
#else
  return std::exp(x);
#endif
}
FUSELINE_HD float fast_reciprocal(float x) {
#if defined(__CUDA_ARCH__)
  float out;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(out) : "f"(x));
  return out;
#else
  return 1.0F / x;
#endif
}
FUSELINE_HD float reciprocal_root(float x) {
#if defined(__CUDA_ARCH__)
  return rsqrtf(x);
#else
  return 1.0F / std::sqrt(x);
#endif
}
FUSELINE_HD float natural_log(float x) {
#if defined(__CUDA_ARCH__)
  return logf(x);
#else
  return std::log(x);
#endif
}

FUSELINE_HD float sigmoid_of(float x) { return fast_reciprocal(1.0F + fast_exp(-x)); }
// tanh(x) = 1 - 2 / (exp(2 x) + 1): ±1 in the limits, since exp becomes 0 or infinity.
FUSELINE_HD float tanh_of(float x) {
  return 1.0F - 2.0F * fast_reciprocal(fast_exp(2.0F * x) + 1.0F);
}
// erf(x) within 1.5e-7, far below the rounding of a 16-bit result: Abramowitz and Stegun, 7.1.26.
// CUDA's erff has two branches of some forty instructions each, and an epilogue that unrolls it for
// every element of a tile, beside the rest of a slope, no longer fits the instruction cache. Where
// GELU alone is computed, erff was the faster one (39.5 against 43.8 µs in BERT's `up`, on an H100).
FUSELINE_HD float erf_of(float x) {
  const float size = x < 0.0F ? -x : x;
  const float t = fast_reciprocal(1.0F + 0.3275911F * size);
  const float p =
      t * (0.254829592F +
           t * (-0.284496736F + t * (1.421413741F + t * (-1.453152027F + t * 1.061405429F))));
  const float of_size = 1.0F - p * fast_exp(-x * x);
  return x < 0.0F ? -of_size : of_size;
}
// GELU with tanh: x · (1 + tanh z) / 2, z = sqrt(2 / π) (x + 0.044715 x³), which is x · sigmoid(2 z).
// Its slope is s + x s (1 - s) · 2 z', s the sigmoid. Both share s where both are computed.
constexpr float gelu_scale = 1.5957691216F;  // 2 sqrt(2 / π)
FUSELINE_HD float gelu_sigmoid_of(float x) {
  return sigmoid_of(x * (gelu_scale + 0.044715F * gelu_scale * (x * x)));
}
FUSELINE_HD float gelu_tanh_of(float x) { return x * gelu_sigmoid_of(x); }
FUSELINE_HD float gelu_tanh_slope_of(float x) {
  const float s = gelu_sigmoid_of(x), y = x * s;
  return s + (y - y * s) * (gelu_scale + 0.134145F * gelu_scale * (x * x));
}

// map_1 and map_2 visit the elements of one kind of value: here those of fragments, in
// stream/map.cuh those of streams. The maps below are written once for both.
template <class A, class F, int = A::each>
FUSELINE_HD A map_1(const A& a, F&& f) {
  A out;
  for_each_element<A>([&](int h, int g, int e) { out.at(h, g, e) = f(a.at(h, g, e)); });
  return out;
}

template <class A, class B>
using Joined = typename FormOf<max_of(A::each, B::each), max_of(A::groups, B::groups),
                               A::per_row || B::per_row, A::per_col || B::per_col>::type;

template <class A, class B, class F>
FUSELINE_HD Joined<A, B> map_2(const A& a, const B& b, F&& f) {
  static_assert((A::each == B::each && A::groups == B::groups) || A::each == 0 || B::each == 0,
                "values of different widths");
  Joined<A, B> out;
  for_each_element<Joined<A, B>>(
      [&](int h, int g, int e) { out.at(h, g, e) = f(a.at(h, g, e), b.at(h, g, e)); });
  return out;
}

template <class A, class B>
FUSELINE_HD auto add(const A& a, const B& b) {
  return map_2(a, b, [](float x, float y) { return x + y; });
}
template <class A, class B>
FUSELINE_HD auto sub(const A& a, const B& b) {
  return map_2(a, b, [](float x, float y) { return x - y; });
}
template <class A, class B>
FUSELINE_HD auto mul(const A& a, const B& b) {
  return map_2(a, b, [](float x, float y) { return x * y; });
}
template <class A>
FUSELINE_HD A scale_by_constant(const A& a, float c) {
  return map_1(a, [c](float x) { return x * c; });
}
template <class A>
FUSELINE_HD A add_constant(const A& a, float c) {
  return map_1(a, [c](float x) { return x + c; });
}
template <class A>
FUSELINE_HD A square(const A& a) {
  return map_1(a, [](float x) { return x * x; });
}
template <class A>
FUSELINE_HD A negate(const A& a) {
  return map_1(a, [](float x) { return -x; });
}
template <class A>
FUSELINE_HD A copy(const A& a) {
  return a;
}
template <class A>
FUSELINE_HD A rsqrt(const A& a) {
  return map_1(a, [](float x) { return reciprocal_root(x); });
}
template <class A>
FUSELINE_HD A reciprocal(const A& a) {
  return map_1(a, [](float x) { return fast_reciprocal(x); });
}
template <class A>
FUSELINE_HD A exp(const A& a) {
  return map_1(a, [](float x) { return fast_exp(x); });
}
template <class A>
FUSELINE_HD A log(const A& a) {
  return map_1(a, [](float x) { return natural_log(x); });
}
template <class A>
FUSELINE_HD A sigmoid(const A& a) {
  return map_1(a, [](float x) { return sigmoid_of(x); });
}
template <class A>
FUSELINE_HD A silu(const A& a) {
  return map_1(a, [](float x) { return x * sigmoid_of(x); });
}
template <class A>
FUSELINE_HD A gelu_tanh(const A& a) {
  return map_1(a, [](float x) { return gelu_tanh_of(x); });
}
template <class A>
FUSELINE_HD A gelu_tanh_slope(const A& a) {
  return map_1(a, [](float x) { return gelu_tanh_slope_of(x); });
}

}  // namespace fuseline::gpu
