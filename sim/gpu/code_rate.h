// How fast tensor cores multiply codes by codes.
#pragma once

#include "base/units.h"
#include "model/config/dtype.h"
#include "sim/gpu/gpu.h"

namespace fuseline {

// Dense, at tensor_clock, as the GPU's file quotes it. InputError where the file says that there is
// none, or does not say.
FlopsPerSecond code_rate(const Gpu& gpu, Dtype codes);

}  // namespace fuseline
