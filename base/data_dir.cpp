#include "base/data_dir.h"

#include <dlfcn.h>

#include <cstdlib>
#include <system_error>

#include "base/error.h"
#include "base/path_kind.h"

#ifndef FUSELINE_DATA_DIR
#define FUSELINE_DATA_DIR ""
#endif
#ifndef FUSELINE_INSTALLED_DATA_DIR
#define FUSELINE_INSTALLED_DATA_DIR ""
#endif

namespace fuseline {
namespace {

namespace fs = std::filesystem;

// A scenarios/ folder of another project must not be taken for ours.
bool holds_data(const fs::path& folder) {
  std::error_code ignored;
  return fs::is_directory(folder / "models", ignored) && fs::is_directory(folder / "gpus", ignored);
}

// The program, or the shared library that this code lies in: Python's module has its data beside
// it.
fs::path own_executable() {
  Dl_info self{};
  if (dladdr(reinterpret_cast<const void*>(&holds_data), &self) != 0 && self.dli_fname != nullptr) {
    const fs::path library = self.dli_fname;
    if (library.extension() == ".so") return fs::absolute(library);
  }
  std::error_code failed;
  fs::path link = fs::read_symlink("/proc/self/exe", failed);
  return failed ? fs::path() : link;
}

}  // namespace

fs::path find_data_dir(const std::optional<fs::path>& from_environment, const fs::path& executable,
                       const fs::path& built_from) {
  if (from_environment) {
    if (holds_data(*from_environment)) return *from_environment;
    static_cast<void>(
        kind_of_path(*from_environment / "models"));  // no permission is another error
    InputProblem problem;
    problem.file = "environment";
    problem.field = "FUSELINE_DATA";
    problem.value = from_environment->string();
    problem.message = "holds no data files";
    problem.allowed = "a folder with the subfolders models and gpus";
    throw InputError(problem);
  }
  for (fs::path folder = executable.parent_path(); !folder.empty(); folder = folder.parent_path()) {
    for (const char* below : {"scenarios", "share/fuseline/scenarios"})
      if (holds_data(folder / below)) return folder / below;
    if (folder == folder.root_path()) break;
  }
  if (!built_from.empty() && holds_data(built_from)) return built_from;
  throw MissingError(
      "the data files of fuseline (scenarios/models, scenarios/gpus) are not beside the program; "
      "set FUSELINE_DATA to the scenarios folder");
}

fs::path data_dir() {
  std::optional<fs::path> from_environment;
  const char* value = std::getenv("FUSELINE_DATA");
  if (value != nullptr && *value != '\0') from_environment = value;
  // Another program that links us may lie anywhere; the source tree may be gone by then.
  const fs::path source_tree = FUSELINE_DATA_DIR;
  return find_data_dir(
      from_environment, own_executable(),
      holds_data(source_tree) ? source_tree : fs::path(FUSELINE_INSTALLED_DATA_DIR));
}

}  // namespace fuseline
