// Where the simulator finds a plan's tensors: on chip, in L2, or in HBM.
#pragma once

#include "model/explain.h"
#include "sim/estimate.h"

namespace fuseline {

// Completes the homes of an explanation: a tensor of which at least 99 % of the bytes that tiles
// load are found in L2 has the home "L2"; "HBM, 40 % of loads hit L2" when a part. Unread tensors
// and those that never leave the chip keep their homes. `estimate`: of the explained plan, at
// hierarchy fidelity.
void add_residence(Explanation& explanation, const Plan& plan, const PlanEstimate& estimate);

}  // namespace fuseline
