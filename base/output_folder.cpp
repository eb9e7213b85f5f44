#include "base/output_folder.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <random>
#include <string>
#include <system_error>

#include <fmt/format.h>

#include "base/error.h"
#include "base/output_file.h"
#include "base/path_kind.h"

namespace fuseline {

namespace {

namespace fs = std::filesystem;

[[noreturn]] void refuse_folder(const fs::path& folder, const std::string& why) {
  throw InputError({.file = folder.string(),
                    .message = "cannot be written: " + why,
                    .allowed = "a folder that can be written"});
}

fs::path around(const fs::path& folder) {
  return folder.has_parent_path() ? folder.parent_path() : fs::path(".");
}

// "results/" is the folder "results".
fs::path without_slash(const fs::path& folder) {
  return folder.has_filename() ? folder : folder.parent_path();
}

// A name beside the folder that nothing has, made by `make`, which fails where something is.
template <class Make>
fs::path unique_beside(const fs::path& folder, const fs::path& named, Make make) {
  constexpr int kTries = 100;
  std::random_device random;
  int error = EEXIST;
  for (int i = 0; i < kTries && error == EEXIST; ++i) {
    fs::path path = around(folder) / fmt::format(".fuseline-{:08x}.part", random());
    if (make(path) == 0) return path;
    error = errno;
  }
  std::error_code ignored;
  if (error == ENOENT && !fs::exists(around(folder), ignored))
    throw InputError(
        {.file = named.string(),
         .message = fmt::format("cannot be made: there is no folder {}", around(folder).string()),
         .allowed = "a folder in one that is there"});
  refuse_folder(named, std::strerror(error));
}

// Files that were copied into it included.
void sync_all(const fs::path& folder) {
  std::error_code error;
  for (fs::recursive_directory_iterator at(folder, error), end; !error && at != end;
       at.increment(error)) {
    if (fs::is_directory(at->symlink_status(error))) sync_folder(at->path());
    if (!fs::is_regular_file(at->symlink_status(error))) continue;
    const int file = ::open(at->path().c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    if (file < 0) continue;
    ::fsync(file);
    ::close(file);
  }
  sync_folder(folder);
}

// The old folder steps aside first and comes back when the new one cannot take its place: for file
// systems that cannot exchange names.
void swap_in_two_steps(const fs::path& draft, const fs::path& folder, const fs::path& named) {
  // An empty folder of our own, which rename replaces.
  const fs::path old = unique_beside(
      folder, named, [](const fs::path& path) { return ::mkdir(path.c_str(), 0777); });
  if (::rename(folder.c_str(), old.c_str()) != 0) {
    const int error = errno;
    ::rmdir(old.c_str());
    refuse_folder(named, std::strerror(error));
  }
  if (::rename(draft.c_str(), folder.c_str()) != 0) {
    const int error = errno;
    ::rename(old.c_str(), folder.c_str());
    refuse_folder(named, std::strerror(error));
  }
  ::rename(old.c_str(), draft.c_str());  // removed with the draft
}

}  // namespace

OutputFolder::OutputFolder(const fs::path& folder)
    : named_(folder), target_(end_of_links(without_slash(folder))) {
  path_ = unique_beside(target_, named_,
                        [](const fs::path& path) { return ::mkdir(path.c_str(), 0777); });
  struct stat old {};
  if (::stat(target_.c_str(), &old) == 0)
    static_cast<void>(::chmod(path_.c_str(), old.st_mode & 0777U));
}

OutputFolder::~OutputFolder() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

void OutputFolder::take_place() {
  sync_all(path_);
  const auto swap = [&](unsigned how) {
    return ::renameat2(AT_FDCWD, path_.c_str(), AT_FDCWD, target_.c_str(), how) == 0 ? 0 : errno;
  };
  int error = swap(RENAME_EXCHANGE);  // the draft's name then has the old folder
  if (error == ENOENT) error = swap(RENAME_NOREPLACE);
  if (error == EINVAL || error == ENOSYS) {
    std::error_code failed;
    if (fs::exists(target_, failed)) {
      swap_in_two_steps(path_, target_, named_);
      error = 0;
    } else {
      error = ::rename(path_.c_str(), target_.c_str()) == 0 ? 0 : errno;
    }
  }
  if (error != 0) refuse_folder(named_, std::strerror(error));
  sync_folder(around(target_));
}

}  // namespace fuseline
