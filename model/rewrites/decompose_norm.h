// RMSNorm as framework primitives, each a kernel of its own:
//   y = rms_norm(x, w)  ->  x32 = float(x); s = x32²; m = mean(s); e = m + eps; r = rsqrt(e);
//                           n32 = x32·r; n = bf16(n32); y = n·w
// and its gradient dx, dw of dy:
//   t = dy·n; dn = dy·w; dw = column_sum(t); d32 = float(dn); p = d32·x32; a = d32·r; s = mean(p);
//   c = r³; c = -c/2; s = s·c; e = s in all columns; b = 2·x32; e = e·b; e = a + e; dx = bf16(e)
// LayerNorm has a library kernel in every framework and stays whole.
#pragma once

#include "model/rewrites/rewrite.h"

namespace fuseline {

Rewrite decompose_norm();

}  // namespace fuseline
