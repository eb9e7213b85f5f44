// RoPE as framework primitives, each a kernel of its own:
//   y = rope(x)  ->  c = x·cos; n = -x2; r = (n, x1); s = r·sin; y = c + s      (x = (x1, x2) a
//   head)
#pragma once

#include "model/rewrites/rewrite.h"

namespace fuseline {

Rewrite decompose_rope();

}  // namespace fuseline
