// SwiGLU as framework primitives:
//   o = swiglu(g, u)       ->  s = silu(g); o = s·u
//   d = swiglu_backward(do, (g, u))
//                          ->  du = do·s; ds = do·u; dg = silu_backward(ds, g); d = (dg, du)
#pragma once

#include "model/rewrites/rewrite.h"

namespace fuseline {

Rewrite decompose_swiglu();

}  // namespace fuseline
