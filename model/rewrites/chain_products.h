// A product that reads nothing but what another product makes may be in the same kernel
// (model/chain.h). Nothing else changes in the graph, so both may still be kernels of their own.
#pragma once

#include "model/rewrites/rewrite.h"

namespace fuseline {

Rewrite chain_products();

}  // namespace fuseline
