// The roofline fidelity: each kernel's compulsory bytes and FLOPs against two ceilings.
#pragma once

#include <vector>

#include "model/plan.h"
#include "sim/block/estimate.h"
#include "sim/gpu/gpu.h"

namespace fuseline {

// Per kernel: time = max(FLOPs / datasheet tensor rate, compulsory bytes / sustained HBM
// bandwidth), with the bytes of each distinct operand once. No launches, no cache, no clocks.
// Microseconds of work a plan.
std::vector<KernelEstimate> roofline(const Plan& plan, const Gpu& gpu);

}  // namespace fuseline
