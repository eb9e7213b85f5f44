// How long a framework's kernels take to choose experts and to sort: dependent passes of few thread
// blocks, not bytes.
#pragma once

#include "sim/kernels/stream_kernel.h"

namespace fuseline {

bool routes(Implementation implementation);

// What such a kernel adds to the time of an empty one; nothing for another kernel.
Seconds routing_time(const StreamKernel& kernel, const Gpu& gpu);

}  // namespace fuseline
