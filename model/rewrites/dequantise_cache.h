// Attention that goes through memory takes no codes: what it sees of a cache in few bits becomes a
// tensor of the workload's type first.
#pragma once

#include "model/rewrites/rewrite.h"

namespace fuseline {

Rewrite dequantise_cache();

}  // namespace fuseline
