// A plan of programs alone, made whole: simulator and executor ask what operators a kernel has.
#pragma once

#include "model/programs/program_file.h"

namespace fuseline {

// The file's plan; where it holds programs alone, each gets its product, if it has one, and one
// operator for what its epilogue or loop does. Asserts that the file could be read.
Plan whole_plan(const ProgramFile& file);

}  // namespace fuseline
