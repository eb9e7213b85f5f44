// The same maths without fusion: what a program is held against.
#pragma once

#include <optional>

#include "model/programs/program_file.h"

namespace fuseline {

// Of a file of programs alone: each GEMM's product goes to memory in the operands' type, and so
// does every tile that a line of a GEMM's or a stream's body makes, each in a kernel of its own.
// Loads, parts of columns and numbers of rows or columns are made again where a kernel needs them.
// Row loops, attention and scans stay as they are: frameworks have them as one kernel too. Nothing:
// the file is a whole plan with operators, or no program has anything to take apart.
std::optional<Plan> unfused_programs(const ProgramFile& file);

}  // namespace fuseline
