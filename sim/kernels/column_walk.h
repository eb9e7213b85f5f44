// How long thread blocks of our own streams walk down columns.
#pragma once

#include "sim/gpu/gpu.h"
#include "sim/kernels/stream_kernel.h"

namespace fuseline {

struct ColumnWalk {
  Seconds steps, ends;  // ends: before the first step and behind the last
};

// A thread block takes its steps one after the other, each the longer the more tiles it loads or
// sums it makes. Then its threads join what they have of every column. Few columns give few thread
// blocks. Sequences give as many for each of them. What the multiprocessors cannot hold together
// comes in a further wave. `missing`: the largest share of a load that L2 does not hold. Nothing
// for a stream that walks down no columns.
ColumnWalk walk_columns(const StreamKernel& kernel, double missing, const Gpu& gpu);

}  // namespace fuseline
