// Folders for files that nobody keeps.
#pragma once

#include <filesystem>
#include <string>

namespace fuseline {

// Where temporary files go: TMPDIR, or /tmp where that is not set. MissingError, with the name of
// the variable, when it is no folder.
std::filesystem::path folder_for_temporaries();

// A new folder of our own there, which is removed with what is in it. MissingError when none can be
// made.
class TemporaryFolder {
 public:
  explicit TemporaryFolder(const std::string& name);  // "fuseline-dot"
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  [[nodiscard]] const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

}  // namespace fuseline
