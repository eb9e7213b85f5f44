// What `program measure` says, and what `predict` says of the same maths without fusion.
#pragma once

#include <string>

#include <nlohmann/json_fwd.hpp>

#include "cuda/run/measure_programs.h"
#include "sim/block/estimate.h"
#include "sim/gpu/gpu.h"

namespace fuseline {

std::string program_measurement_text(const cuda::ProgramMeasurement& m,
                                     const PlanEstimate& predicted, const Gpu& gpu);
nlohmann::ordered_json program_measurement_json(const cuda::ProgramMeasurement& m,
                                                const PlanEstimate& predicted, const Gpu& gpu);

std::string unfused_prediction_text(const PlanEstimate& fused, const PlanEstimate& unfused);

}  // namespace fuseline
