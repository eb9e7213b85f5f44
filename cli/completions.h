// Completions of the command line for a shell.
#pragma once

#include <string>
#include <vector>

#include "cli/description.h"

namespace fuseline {

// A script for bash. Options and their words are in it; names of models, GPUs, policies and so on
// are asked of the program (`fuseline --names models`) when a person presses the key. `topics`:
// what may be asked so.
std::string bash_completions(const std::vector<CommandDescription>& commands,
                             const std::vector<std::string>& topics);

}  // namespace fuseline
