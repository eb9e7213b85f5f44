// How much memory an execution takes, before anything is allocated.
#pragma once

#include <cstdint>
#include <vector>

#include "base/units.h"
#include "model/plan.h"

namespace fuseline::executor {

// Peak of verifying the plans one after the other: given tensors and fp64 reference of the block,
// and the largest plan's own tensors, prepared weights and panels.
Bytes memory_need(const Graph& block, const std::vector<Plan>& plans, int threads);

// What this machine has left (MemAvailable of /proc/meminfo); the largest count where that cannot
// be read.
Bytes available_memory();

// InputError when the need is above the limit.
void check_memory(Bytes need, Bytes limit);

}  // namespace fuseline::executor
