// `program` with several files.
#pragma once

#include <string>
#include <vector>

#include "cli/commands.h"
#include "cli/program_verbs.h"

namespace fuseline {

// One line for each file, in the order of `paths`; a folder stands for its *.fuse by name. With
// `json` each line is one object. What one file has wrong does not stop the others; the status is
// the worst of all. InputError: a path that is not there, a folder without such files.
CommandResult answer_programs(const std::string& verb, const std::vector<std::string>& paths,
                              const ProgramOptions& options, bool json);

}  // namespace fuseline
