// fuseline calibrate --here.
#pragma once

#include <optional>
#include <string>

#include "cli/commands.h"

namespace fuseline {

// As the options were written; absent = not said.
struct HereTexts {
  std::optional<std::string> gpu, minutes, folder, name, iterations, output;
};

// Measures on the GPU of this machine, fits, checks, and writes a GPU file. MissingError: no GPU.
// InputError: the file is there already, the folder is another GPU's, a value out of range.
CommandResult calibrate_the_gpu_here(const HereTexts& texts, const Arguments& args);

}  // namespace fuseline
