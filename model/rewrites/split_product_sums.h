// The gradient of a factor that rows share, as a framework computes it: the products are stored,
// then a kernel sums them over all rows, or over those of each sequence.
#pragma once

#include "model/rewrites/rewrite.h"

namespace fuseline {

Rewrite split_product_sums();

}  // namespace fuseline
