// What programs of one's own cost, line by line.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "model/programs/program_file.h"
#include "sim/gpu/gpu.h"
#include "sim/programs/tile_check.h"

namespace fuseline {

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

// `plan`: whole_plan() of the file, which has no mistakes on the GPU.
ProgramExplanation explain_programs(const ProgramFile& file, const Plan& plan, const Gpu& gpu);

}  // namespace fuseline
