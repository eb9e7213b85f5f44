// Element-wise maps over streams' values: add(h, x), mul(y, r), ... One function per MapFn of
// model/program.h; the result has rows (columns) if any argument has them.
#pragma once

#include "../epilogue/map.cuh"
#include "value.cuh"

namespace fuseline::gpu::stream {

template <class A, class F>
FUSELINE_HD A map_1(const A& a, F&& f) {
  A out;
  for_each<A>([&](int u, int e) { out.at(u, e) = f(a.at(u, e)); });
  return out;
}

template <class A, class B>
using Joined = typename FormOf<max_of(A::units, B::units), max_of(A::width, B::width),
                               A::per_row || B::per_row, A::per_col || B::per_col>::type;

template <class A, class B, class F>
FUSELINE_HD Joined<A, B> map_2(const A& a, const B& b, F&& f) {
  Joined<A, B> out;
  for_each<Joined<A, B>>([&](int u, int e) { out.at(u, e) = f(a.at(u, e), b.at(u, e)); });
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

}  // namespace fuseline::gpu::stream
