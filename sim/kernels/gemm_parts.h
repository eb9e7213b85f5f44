// A long GEMM's walk in parts, each of which is remembered for itself: whatever L2 held before, it
// holds the same once the first waves have replaced it, and what follows was then walked already.
#pragma once

#include <vector>

#include "base/units.h"
#include "sim/kernels/gemm_traffic.h"
#include "sim/kernels/walk_memo.h"

namespace fuseline {

// One behind the other they walk all of it; a single one where parting is not worthwhile. `gemm`
// must outlive them.
std::vector<Walk> parts_of(const GemmWalk& gemm, Bytes l2_capacity);

}  // namespace fuseline
