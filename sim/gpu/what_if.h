// A GPU with some of its numbers multiplied.
#pragma once

#include "model/config/what_if.h"
#include "sim/gpu/gpu.h"

namespace fuseline {

// hbm_bandwidth: datasheet and sustained. l2_bandwidth, l2_capacity: those. sm_count: SMs (rounded,
// at least 1) and with them the rates of tensor and vector units. sm_clock: all SM clocks, and
// those rates. Unless neutral the result's name ends in "+what-if", so that no measurement is taken
// for it, its title says what was changed, and it is not calibrated. InputError (field
// "what_if.KEY") for a factor outside [kLeastFactor, kMostFactor].
Gpu with_what_if(Gpu gpu, const WhatIf& what_if);

// "HBM bandwidth × 1.5, SMs × 0.5"; empty when neutral.
std::string describe(const WhatIf& what_if);

}  // namespace fuseline
