// What `compare` prints for other programs: fuseline.comparison/1. Keys are a contract as in
// sim/report/json_output.h.
#pragma once

#include <string>
#include <vector>

#include "sim/judge/band_fit.h"
#include "sim/judge/validation.h"
#include "sim/measured/measurement.h"

namespace fuseline {

std::string error_table_json(const Measurements& measurements, const ErrorTable& table,
                             const std::vector<Coverage>& coverage = {});

}  // namespace fuseline
