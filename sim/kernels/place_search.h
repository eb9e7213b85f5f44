// What it costs that kernels look for places: which rows of experts belong to a token, where a key
// stands among all of them.
#pragma once

#include "sim/kernels/stream_kernel.h"

namespace fuseline {

// Steps of a warp, one after the other: each looks at as many numbers as the primitive says.
std::int64_t search_steps_of(const Program& program);

// Every warp looks through all numbers for those of its rows: the work grows with their square.
// Warps on one SM wait for memory and issue beside each other, so a step takes about as long for
// all that are there as for one; those that find no place there come after them. A warp has four
// rows of 256 columns (cuda/emit/stream_shape.cpp).
Seconds search_time(const StreamKernel& kernel, const Gpu& gpu);

}  // namespace fuseline
