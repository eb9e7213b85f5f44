// Writing a folder so that it is there whole or not at all.
#pragma once

#include <filesystem>

namespace fuseline {

// A new folder beside `folder`, with a name that nothing has, to be filled and then to take the
// place of `folder`. Removed with what is in it unless it did. Where `folder` is a link, what it
// leads to is replaced and the link stays. InputError (the folder as file): the folder around it
// does not exist or cannot be written.
class OutputFolder {
 public:
  explicit OutputFolder(const std::filesystem::path& folder);
  ~OutputFolder();
  OutputFolder(const OutputFolder&) = delete;
  OutputFolder& operator=(const OutputFolder&) = delete;

  [[nodiscard]] const std::filesystem::path& path() const { return path_; }
  // In one step, so that one of the two always has the name; the old folder goes afterwards. Waits
  // until the new one is on disk.
  void take_place();

 private:
  std::filesystem::path named_, target_, path_;
};

}  // namespace fuseline
