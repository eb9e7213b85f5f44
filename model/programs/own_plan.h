// A plan of programs alone, made whole: simulator and executor ask what operators a kernel has.
#pragma once

#include <optional>

#include "model/programs/program_file.h"

namespace fuseline {

// What a program does beside its product.
OpKind own_program_kind();
// How the kernel of a program alone is launched and made: by its mainloop.
void set_own_kind(Kernel& kernel);
// The product of such a program, with a result on chip; nothing where it has none. Adds the result
// to the plan's tensors.
std::optional<Op> own_product(Plan& plan, const Program& program);

// The file's plan; where it holds programs alone, each gets its product, if it has one, and one
// operator for what its epilogue or loop does. Asserts that the file could be read.
Plan whole_plan(const ProgramFile& file);

}  // namespace fuseline
