// Programs as text: a file holds one program, several, or a whole plan with its tensors, its
// operators, the GPU it was made for and a hash.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "model/plan.h"
#include "model/primitives/map_function.h"
#include "model/programs/diagnosis.h"
#include "model/programs/sizes.h"
#include "model/programs/value_function.h"

namespace fuseline {

inline constexpr int kProgramVersion = 1;  // the first line is "fuse 1"

// Where the lines of one program stand.
struct ProgramPlaces {
  Position head{};
  Position mainloop{};
  std::vector<Position> prologue{}, body{};
};

struct DefinedFunction {
  std::string name;
  ValueFunction function;
};

struct ProgramFile {
  std::shared_ptr<const SourceText> source;
  Plan plan;           // of a file without operators: graph and block hold the tensors alone
  std::string target;  // the GPU that the plan was made for; empty: none is named
  bool has_operators = false;
  Sizes sizes;
  std::vector<DefinedFunction> functions;
  std::vector<std::vector<ProgramPlaces>> places;  // by kernel and phase
  std::vector<Position> tensors;                   // by tensor of the plan's graph
  std::vector<Position> operators;                 // by operator of it
  std::vector<Diagnosis> diagnoses;                // what could not be read

  [[nodiscard]] bool readable() const { return diagnoses.empty(); }
};

// Reads everything that can be read, and says of everything else why not. Does not check programs.
ProgramFile read_program_text(const std::string& text, const std::string& file);
// InputError: the file is not there or too large.
ProgramFile read_program_file(const std::string& path);

// The plan as such a text, which reads back as the same plan. `target`: a GPU's name, or empty.
std::string plan_text(const Plan& plan, const std::string& target);
// Of the text without its line "hash", as that line says it.
std::string hash_of_text(const std::string& text);

}  // namespace fuseline
