#include "cli/output_file.h"
#include "cli/options.h"

#include "base/error.h"
#include "base/output_file.h"

namespace fuseline {

namespace {

template <class Work>
void for_option(const std::string& path, const std::string& option, Work work) {
  try {
    work();
  } catch (const InputError& error) {
    InputProblem problem = error.problem();
    problem.file = kCommandLine;
    problem.field = option;
    problem.value = path.empty() ? "\"\"" : path;
    throw InputError(std::move(problem));
  }
}

}  // namespace

void write_file_atomically(const std::string& path, const std::string& text,
                           const std::string& option) {
  for_option(path, option, [&] { replace_file(path, text); });
}

void check_writable(const std::string& path, const std::string& option) {
  for_option(path, option, [&] { check_replaceable(path); });
}

}  // namespace fuseline
