// A plan's file in the place of a policy's plan.
#pragma once

#include <memory>
#include <string>

#include "model/plan.h"
#include "model/programs/program_file.h"

namespace fuseline {

// The file's plan, legal and with the operators of a block. InputError: the first mistake, with its
// line; programs alone.
std::shared_ptr<const Plan> plan_of_file(const ProgramFile& file);

// What the plan computes is that block of that name. InputError, of `file` and `field`: another
// tensor, or one of another size or type.
void check_same_block(const Plan& plan, const Graph& block, const std::string& name,
                      const std::string& file, const std::string& field);

}  // namespace fuseline
