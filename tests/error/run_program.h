// Starts the program as a user would, in an empty folder.
#pragma once

#include <string>
#include <vector>

namespace fuseline {

struct ProgramRun {
  bool available = false;               // false where the program is not part of the build
  int status = -1;                      // exit status; -1 when a signal ended it, 124 when it hung
  std::string output;                   // standard output
  std::string error;                    // standard error
  std::vector<std::string> files_left;  // what it left in the folder
};

// `environment`: "NAME=VALUE", beside what is set here.
ProgramRun run_program(const std::vector<std::string>& arguments,
                       const std::string& environment = {});

}  // namespace fuseline
