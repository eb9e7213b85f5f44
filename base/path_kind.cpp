#include "base/path_kind.h"

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <system_error>

#include "base/error.h"

namespace fuseline {

namespace {

namespace fs = std::filesystem;

constexpr int kMostLinks = 40;  // as many as the system follows

[[noreturn]] void refuse(const fs::path& path, const std::string& message) {
  throw InputError({.file = path.string(), .message = message});
}

// The path that a link holds; nothing when it is no link.
std::optional<fs::path> next_of(const fs::path& path) {
  std::error_code failed;
  const fs::path next = fs::read_symlink(path, failed);
  if (failed) return std::nullopt;
  return path.parent_path() / next;
}

// "3" in the folder of this process's descriptors.
std::optional<int> descriptor_named(const fs::path& path) {
  const std::string name = path.filename().string();
  int number = -1;
  const auto [end, bad] = std::from_chars(name.data(), name.data() + name.size(), number);
  if (bad != std::errc() || end != name.data() + name.size() || number < 0) return std::nullopt;
  std::error_code failed;
  const fs::path folder = fs::canonical(path.parent_path(), failed);
  if (failed || folder != fs::canonical("/proc/self/fd", failed) || failed) return std::nullopt;
  return fcntl(number, F_GETFD) < 0 ? std::nullopt : std::optional(number);
}

}  // namespace

PathKind kind_of_path(const fs::path& path) {
  std::error_code failed;
  const fs::file_status status = fs::status(path, failed);
  switch (status.type()) {
    case fs::file_type::not_found:
      return PathKind::missing;
    case fs::file_type::regular:
      return PathKind::regular;
    case fs::file_type::directory:
      return PathKind::folder;
    case fs::file_type::fifo:
      return PathKind::pipe;
    case fs::file_type::block:
    case fs::file_type::character:
      return PathKind::device;
    case fs::file_type::none:
      refuse(path, "cannot be read: " + failed.message());
    default:
      return PathKind::other;
  }
}

fs::path end_of_links(const fs::path& path) {
  fs::path at = path;
  for (int links = 0; links < kMostLinks; ++links) {
    const auto next = next_of(at);
    if (!next) break;
    at = *next;
  }
  return at;
}

std::optional<int> own_descriptor(const fs::path& path) {
  fs::path at = path;
  for (int links = 0; links < kMostLinks; ++links) {
    if (const auto number = descriptor_named(at)) return number;
    const auto next = next_of(at);
    if (!next) return std::nullopt;
    at = *next;
  }
  return std::nullopt;
}

std::vector<fs::path> folder_entries(const fs::path& folder) {
  // The system's own calls: without memory, libstdc++'s iterators end the program.
  const std::unique_ptr<DIR, int (*)(DIR*)> listing(::opendir(folder.c_str()), ::closedir);
  if (!listing) refuse(folder, std::string("cannot be read: ") + std::strerror(errno));
  std::vector<fs::path> entries;
  for (errno = 0; const dirent* entry = ::readdir(listing.get()); errno = 0) {
    const std::string_view name = entry->d_name;
    if (name != "." && name != "..") entries.push_back(folder / name);
  }
  if (errno != 0) refuse(folder, std::string("cannot be read: ") + std::strerror(errno));
  std::sort(entries.begin(), entries.end());
  return entries;
}

}  // namespace fuseline
