// Kernels from the CSV output of Nsight Compute: `ncu --csv --page raw` (a row per kernel, units
// in the second row) and the default form (a row per metric).
#pragma once

#include <string>
#include <vector>

#include "sim/measured/measurement.h"

namespace fuseline {

// What ncu must be asked for: time, HBM bytes read and written, L2 bytes.
inline constexpr const char* kNsightMetrics =
    "gpu__time_duration.sum,dram__bytes_read.sum,dram__bytes_write.sum,lts__t_bytes.sum";

struct NsightKernel {
  MeasuredKernel kernel;           // its site is the innermost NVTX range "op=SITE", if any
  std::string process, device;     // process id; ordinal of the GPU; empty where not printed
  std::string compute_capability;  // "9.0"
  int line = 0;                    // in the file
};

struct NsightReport {
  std::string path;
  std::vector<NsightKernel> kernels;  // in the order of their launches
  bool rounded = false;  // bytes were printed in larger units, with two or three decimals
};

// Names are shortened as in kernels.csv ("(anonymous namespace)" → "<unnamed>", no "native::", 90
// characters); a kind that only the whole name tells is recorded.
// InputError (file, metric, value, allowed, line): read_nsight_table's; a metric that was not
// collected, with the ncu command that collects it; a value that is not a number; an unknown unit;
// a kernel without time.
NsightReport read_nsight_csv(const std::string& path);
// Of a text that was read before; `path` is for messages.
NsightReport read_nsight_csv(const std::string& path, const std::string& text);

}  // namespace fuseline
