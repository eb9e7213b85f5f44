// What `program --format json` and Python say of programs of one's own.
#pragma once

#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "model/config/config.h"
#include "model/programs/diagnosis.h"
#include "sim/block/estimate.h"
#include "sim/gpu/gpu.h"
#include "sim/programs/program_costs.h"
#include "sim/programs/verify_programs.h"

namespace fuseline {

nlohmann::ordered_json diagnoses_json(const std::vector<Diagnosis>& diagnoses);
nlohmann::ordered_json program_explanation_json(const ProgramExplanation& e);
nlohmann::ordered_json program_prediction_json(const PlanEstimate& estimate, const Gpu& gpu);
// The same maths without fusion, and how many times as fast the programs are.
nlohmann::ordered_json unfused_prediction_json(const PlanEstimate& fused,
                                               const PlanEstimate& unfused);
nlohmann::ordered_json program_verification_json(const VerifiedPrograms& v);

// Which work the bands of such programs are taken of: they have no workload of their own, and get
// the bands of forward work in bf16.
const Workload& bands_of_programs();

}  // namespace fuseline
