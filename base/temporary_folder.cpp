#include "base/temporary_folder.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <system_error>

#include "base/error.h"

namespace fuseline {

namespace fs = std::filesystem;

fs::path folder_for_temporaries() {
  std::error_code failed;
  fs::path folder = fs::temp_directory_path(failed);
  if (!failed) return folder;
  const char* given = std::getenv("TMPDIR");
  throw MissingError(
      fmt::format("no folder for temporary files: {} ({}); set TMPDIR to a folder that exists",
                  given == nullptr ? "TMPDIR is not set and there is no /tmp"
                                   : fmt::format("TMPDIR = '{}'", given),
                  failed.message()));
}

TemporaryFolder::TemporaryFolder(const std::string& name) {
  const fs::path around = folder_for_temporaries();
  std::string pattern = (around / (name + "-XXXXXX")).string();
  if (mkdtemp(pattern.data()) == nullptr) {
    throw MissingError(fmt::format("no temporary folder can be made in {}: {}", around.string(),
                                   std::strerror(errno)));
  }
  path_ = pattern;
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

}  // namespace fuseline
