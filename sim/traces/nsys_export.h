// What Nsight Systems exports: its database as SQLite, and the table of one of its reports as CSV.
#pragma once

#include <string>

#include "sim/traces/launch_list.h"

namespace fuseline {

// `nsys export --type sqlite`. InputError: as SqliteFile; a CUDA graph that was recorded as a whole
// (how to record its kernels).
LaunchList read_nsys_sqlite(const std::string& path);

// `nsys stats --report cuda_gpu_trace --format csv`; lines before the header are skipped.
// InputError (line, column, value, allowed): no such table, a cell that is not what its column
// holds.
LaunchList read_nsys_csv(const std::string& path, const std::string& text);

// Whether such a table is in the text.
bool holds_nsys_csv(const std::string& text);

}  // namespace fuseline
