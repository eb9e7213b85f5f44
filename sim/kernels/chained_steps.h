// What a warp does one step after the other, whatever the bytes: loads at places that other loads
// bring, a choice of experts one by one, a search through numbers in memory.
#pragma once

#include "sim/kernels/stream_kernel.h"

namespace fuseline {

// Of all primitives of the program, which wait for each other.
ChainedSteps chained_steps_of(const Program& program);

// Every warp that searches looks through all numbers for those of its rows: the work grows with
// their square. Warps on one SM wait for memory and issue beside each other, so a step takes about
// as long for all that are there as for one; those that find no place there come after them. A warp
// has columns for 32 lanes of 8 (cuda/emit/stream_shape.cpp).
Seconds time_of_chain(const StreamKernel& kernel, const Gpu& gpu);

}  // namespace fuseline
