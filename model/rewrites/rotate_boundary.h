// Where one block ends and the next begins, the block is one of many equal ones, so work may move
// across: what the first operator makes of x, the previous block's last operator made of its y.
//   rotate_statistics   stats_norm1 reads x  ->  x_stats is an input; y_stats is made of y
//   rotate_weighted     weight_norm1 reads x -> x_weighted is an input; y_weighted is made of y
//   rotate_entry_norm   norm1 reads x        ->  xn1 is an input; the next block's is made of y
#pragma once

#include "model/rewrites/rewrite.h"

namespace fuseline {

Rewrite rotate_statistics();
Rewrite rotate_weighted();  // what split_norm_keeping_weight makes
// The same where a product reads it whose weight is stored in few bits: there split_norm keeps the
// norm's weight.
Rewrite rotate_weighted_before_codes();
Rewrite rotate_entry_norm();

}  // namespace fuseline
