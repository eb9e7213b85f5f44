// What programs say that no kernel of ours does yet.
#pragma once

#include <string>

#include "model/program.h"

namespace fuseline::cuda {

// What of the program has no kernel for a real GPU, in words; empty when all of it has.
std::string not_built(const Program& program);

}  // namespace fuseline::cuda
