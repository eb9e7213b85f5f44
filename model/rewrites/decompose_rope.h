// RoPE as framework primitives, each a kernel of its own (x = (x1, x2) a head):
//   y = rope(x)             ->  c = x·cos; n = -x2; r = (n, x1); s = r·sin; y = c + s
//   dx = rope_backward(dy)  ->  s = dy·sin; n = -s1; c = dy·cos; r = (s2, n); dx = r + c
#pragma once

#include "model/rewrites/rewrite.h"

namespace fuseline {

Rewrite decompose_rope();

}  // namespace fuseline
