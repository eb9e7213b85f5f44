// Energy of what was predicted, with its band.
#pragma once

#include "sim/block/whole_model.h"
#include "sim/gpu/power.h"
#include "sim/sure/band.h"

namespace fuseline {

// What the GPU draws without work for the whole time, and what the work takes. `time`: the band of
// the time, which the idle part shares; that of the work is the constant power.energy_uncertainty.
Energy energy_of(const KernelEstimate& kernel, const Gpu& gpu, const Band& time);
Energy energy_of(const PlanEstimate& block, const Gpu& gpu, const Band& time);
Energy energy_of(const LayersEstimate& layers, const Gpu& gpu, const Band& time);

}  // namespace fuseline
