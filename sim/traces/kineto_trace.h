// Chrome's trace events, as PyTorch's profiler (Kineto) writes them.
#pragma once

#include <string>

#include "sim/traces/launch_list.h"

namespace fuseline {

// Events of the categories kernel, gpu_memcpy and gpu_memset; times are in µs. Counters are taken
// from arguments that have the names of Nsight Compute's metrics, which the profiler writes when it
// is asked for them. InputError: as walk_json; an event without a name or with times that are none.
LaunchList read_kineto_trace(const std::string& path, const std::string& text);

}  // namespace fuseline
