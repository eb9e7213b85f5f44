// What `program` says to people: diagnoses, explanations, predictions and verifications as text.
#pragma once

#include <string>
#include <vector>

#include "model/programs/diagnosis.h"
#include "sim/block/estimate.h"
#include "sim/gpu/gpu.h"
#include "sim/programs/program_costs.h"
#include "sim/programs/verify_programs.h"

namespace fuseline {

std::string diagnoses_text(const std::vector<Diagnosis>& diagnoses);
std::string program_explanation_text(const ProgramExplanation& e);
std::string program_prediction_line(const PlanEstimate& estimate, const Gpu& gpu);
std::string program_prediction_text(const PlanEstimate& estimate, const Gpu& gpu);
std::string program_verification_text(const VerifiedPrograms& v);

}  // namespace fuseline
