// RMSNorm as framework primitives, each a kernel of its own:
//   y = rms_norm(x, w)  ->  x32 = float(x); s = x32²; m = mean(s); e = m + eps; r = rsqrt(e);
//                           n32 = x32·r; n = bf16(n32); y = n·w
// LayerNorm has a library kernel in every framework and stays whole.
#pragma once

#include "model/rewrites/rewrite.h"

namespace fuseline {

Rewrite decompose_norm();

}  // namespace fuseline
