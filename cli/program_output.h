// What `program` says: diagnoses, explanations, predictions and verifications, as text and as JSON.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "model/programs/program_file.h"
#include "sim/block/estimate.h"
#include "sim/gpu/gpu.h"
#include "sim/programs/tile_check.h"
#include "sim/programs/verify_programs.h"

namespace fuseline {

std::string diagnoses_text(const std::vector<Diagnosis>& diagnoses);
nlohmann::ordered_json diagnoses_json(const std::vector<Diagnosis>& diagnoses);

// What one line of a program moves, all tiles together, and what its results take in a tile.
struct LineCost {
  int line = 0;
  std::string text;
  std::int64_t loaded = 0, stored = 0;  // bytes, each element once
  std::int64_t registers = 0;           // of a thread, for a tile of a GEMM; 0: none
};
struct ProgramCosts {
  std::string name;
  std::optional<TileBudget> budget;  // of a GEMM
  std::vector<LineCost> lines;
};
// A function that the file defines, with its derivative by each parameter.
struct ExplainedFunction {
  std::string call, formula;  // "swish(x)", "x * sigmoid(x)"
  std::vector<std::string> parameters, derivatives;
};
struct ProgramExplanation {
  std::vector<ExplainedFunction> functions;
  std::vector<ProgramCosts> programs;
};
ProgramExplanation explain_programs(const ProgramFile& file, const Plan& plan, const Gpu& gpu);
std::string program_explanation_text(const ProgramExplanation& e);
nlohmann::ordered_json program_explanation_json(const ProgramExplanation& e);

std::string program_prediction_line(const PlanEstimate& estimate, const Gpu& gpu);
std::string program_prediction_text(const PlanEstimate& estimate, const Gpu& gpu);
nlohmann::ordered_json program_prediction_json(const PlanEstimate& estimate, const Gpu& gpu);

std::string program_verification_text(const VerifiedPrograms& v);
nlohmann::ordered_json program_verification_json(const VerifiedPrograms& v);

}  // namespace fuseline
