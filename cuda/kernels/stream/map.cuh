// How the maps of epilogue/map.cuh (add(h, x), mul(y, r), ...) go over streams' values: the result
// has rows (columns) if any argument has them.
#pragma once

#include "../epilogue/map.cuh"
#include "value.cuh"

namespace fuseline::gpu::stream {

template <class A, class F, int = A::units>
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

}  // namespace fuseline::gpu::stream
