// Programs as loop nests: from the mainloop and from what every primitive says of itself.
#pragma once

#include "model/program.h"
#include "sim/nests/loop_nest.h"

namespace fuseline {

// One product of a batch, one head, one sequence. Loops:
//   GEMM       m, n, k; arrays a, b, and v0 for the result
//   attention  m queries, s keys, k columns of a head of Q and K, n columns of V; arrays q, k, v
//   scan       t tokens, m rows and s columns of the state, n = m
//   others     m, n
// then a statement for every primitive of the body on elements [m, n] of values v1, v2, ... A value
// that a tile makes again for itself, such as a loaded vector, is one value for each element.
LoopNest nest_of(const Program& program);

// Two products in one kernel: h[m, f] = a[m, k] b[f, k]^T, g = map(h), y[m, n] = g[m, f] c[n, f]^T.
LoopNest nest_of_chain(std::int64_t m, std::int64_t f, std::int64_t k, std::int64_t n);

}  // namespace fuseline
