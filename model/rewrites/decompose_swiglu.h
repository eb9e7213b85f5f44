// SwiGLU as framework primitives:  o = swiglu(g, u)  ->  s = silu(g); o = s·u
#pragma once

#include "model/rewrites/rewrite.h"

namespace fuseline {

Rewrite decompose_swiglu();

}  // namespace fuseline
