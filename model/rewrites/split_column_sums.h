// Sums over all rows in two stages, because a block has few columns and many rows:
//   dw = column_sum(x)  ->  p = col_stats_partial(x) over tiles of 128 rows; dw =
//   col_stats_finish(p)
// and the same for the weight of a norm, whose summand is dy·x̂.
#pragma once

#include "model/rewrites/rewrite.h"

namespace fuseline {

Rewrite split_column_sums();

}  // namespace fuseline
