// The gradient of a norm without a pass over its rows:
//   p = dy W; dx = norm_backward(p, h, w, stats); dh = dx + dres
//     ->  s = row_dot_partial(dy, y); c = row_dot_finish(s);
//         p = dy W; dh = norm_backward_deferred(p, h, w, stats, c, dres)
// because the row sum that it needs is that of y·dy (without y's part that does not come from the
// norm: a bias), where y = W norm(h) and dy meet anyway. The rotations between y and attention keep
// the product, so the rotated values serve; with a bias y is turned back first. LayerNorm needs the
// sum of dy·(γW) too.
#pragma once

#include "model/rewrites/rewrite.h"

namespace fuseline {

// For joint graphs whose norms split_norm_keeping_weight has split.
Rewrite defer_norm_backward();

}  // namespace fuseline
