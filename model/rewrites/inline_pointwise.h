// A compiler that generates loops computes a cheap element-wise value again in each loop that needs
// it, instead of storing it:
//   h = o + x; n = norm(h); y = dn + h   ->   h = o + x; n = norm(h); h' = o + x; y = dn + h'
// Applies where every reader is itself a generated loop and the value reads at most 4 tensors
// (Inductor's realize_reads_threshold).
#pragma once

#include "model/rewrites/rewrite.h"

namespace fuseline {

Rewrite inline_pointwise();

}  // namespace fuseline
