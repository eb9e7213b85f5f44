// What measure --instructions writes.
#pragma once

#include <string>

#include "cuda/run/measure.h"

namespace fuseline {

// One line for each instruction of a launch: when it ran, and when it was predicted to. InputError
// (--instructions): no policy whose launch has instructions.
std::string instructions_csv(const cuda::GpuMeasurement& m);

}  // namespace fuseline
