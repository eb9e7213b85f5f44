// What measure prints.
#pragma once

#include <string>

#include "cli/selection.h"
#include "cuda/run/measure.h"

namespace fuseline {

// At most 100 columns wide. `kernels`: every kernel too.
std::string measurement_table(const Selection& selection, const cuda::GpuMeasurement& m,
                              bool kernels);

// {"schema":"fuseline.measurement/1", ...}: the table's numbers with every kernel, checked tensor,
// tried tile and rival.
std::string measurement_json(const Selection& selection, const cuda::GpuMeasurement& m);

// Why a check failed, in one line; empty when all passed.
std::string first_failure(const cuda::GpuMeasurement& m);

// What a folder's meta.toml says of the arguments: one line of printable ASCII, other bytes as '?',
// of a length that it holds.
std::string recorded_command(const std::vector<std::string>& args,
                             const std::string& command = "measure");

}  // namespace fuseline
