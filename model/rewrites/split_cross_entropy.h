// The loss behind the LM head's GEMM: of every tile of logits its maximum, sum of exponentials and
// target stay, and a finisher makes the log-sum-exp and the loss of them.
//   loss, lse = cross_entropy(logits, targets)
//   ->  partials = cross_entropy_partial(logits, targets)
//       loss, lse = cross_entropy_finish(partials)
#pragma once

#include "model/rewrites/rewrite.h"

namespace fuseline {

Rewrite split_cross_entropy();

}  // namespace fuseline
