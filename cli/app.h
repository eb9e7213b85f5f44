// The command line as a function, so that tests call it in-process.
#pragma once

#include <iosfwd>
#include <string>
#include <vector>

namespace fuseline {

enum class ExitStatus : int {
  done = 0,
  check_failed = 1,
  wrong_input = 2,
  something_missing = 3,
  our_bug = 70,
};

std::string version();  // "0.1.0"

// `args` without the program's name. Results go to `out`, messages and errors to `err`; after an
// error nothing has been written to `out`. Never throws.
int run_cli(const std::vector<std::string>& args, std::ostream& out, std::ostream& err);

}  // namespace fuseline
