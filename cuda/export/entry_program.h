// What comes ahead of the first of equal layers.
#pragma once

#include <optional>
#include <set>
#include <string>

#include "model/plan.h"

namespace fuseline::cuda {

struct EntryProgram {
  Plan plan;                    // of one program, over tensors with the names of the layers' plan
  std::set<std::string> makes;  // inputs of the plan that are no inputs of the block
};

// Under some policies a layer leaves statistics of its output, or the output times the next norm's
// weight, for the layer behind it. The first layer has none before it: this program computes them
// from the block's input. Nothing: the plan takes what the block takes. InputError: it takes
// something else that no program is known for.
std::optional<EntryProgram> entry_program(const Plan& plan);

}  // namespace fuseline::cuda
