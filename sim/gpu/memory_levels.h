// The memory of a GPU as a list of levels, from registers to device memory.
#pragma once

#include <vector>

#include "sim/gpu/gpu.h"

namespace fuseline {

// "sm", "die", "package".
const char* name_of(MemoryScope scope);

// From the SM outwards: registers, shared memory, what the GPU's file has in [[memory]], the shared
// cache, device memory. The hierarchy model times registers and shared memory per SM, the shared
// cache and device memory; it only lists the others.
std::vector<GpuMemory> memory_levels(const Gpu& gpu);

}  // namespace fuseline
