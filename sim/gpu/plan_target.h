// The budgets of a GPU for the plans that are made for it.
#pragma once

#include "model/target.h"
#include "sim/gpu/gpu.h"

namespace fuseline {

// Shared memory is the GPU's. The tile is that of Target with as many stages as leave room for one
// operand of an epilogue, three or two; where not even two do, the largest such tile of the
// architecture's own mainloop.
Target plan_target(const Gpu& gpu);

}  // namespace fuseline
