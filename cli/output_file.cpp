#include "cli/output_file.h"

#include <filesystem>

#include "model/error.h"
#include "model/output_file.h"

namespace fuseline {

namespace {

template <class Work>
void for_option(const std::string& path, const std::string& option, Work work) {
  try {
    work();
  } catch (const InputError& error) {
    InputProblem problem = error.problem();
    problem.file = "command line";
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

// Tries with a file of another name.
void check_writable(const std::string& path, const std::string& option) {
  namespace fs = std::filesystem;
  for_option(path, option, [&] {
    std::error_code error;
    if (path.empty() || fs::is_directory(path, error)) return replace_file(path, "");
    const fs::path trial = path + ".trial";
    replace_file(trial, "");
    fs::remove(trial, error);
  });
}

}  // namespace fuseline
