#include "base/data_files.h"

#include <fmt/format.h>

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>
#include <cstring>
#include <string_view>
#include <system_error>

#include "base/data_dir.h"
#include "base/error.h"
#include "base/path_kind.h"

namespace fuseline {
namespace {

namespace fs = std::filesystem;

bool is_digit(char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; }

// Takes the leading run of digits, without leading zeros.
std::string_view take_number(std::string_view& text) {
  std::size_t end = 0;
  while (end < text.size() && is_digit(text[end])) ++end;
  std::string_view digits = text.substr(0, end);
  text.remove_prefix(end);
  while (digits.size() > 1 && digits.front() == '0') digits.remove_prefix(1);
  return digits;
}

// Character order, but runs of digits compare as numbers.
bool natural_less(std::string_view a, std::string_view b) {
  while (!a.empty() && !b.empty()) {
    if (is_digit(a.front()) && is_digit(b.front())) {
      const std::string_view x = take_number(a);
      const std::string_view y = take_number(b);
      if (x.size() != y.size()) return x.size() < y.size();
      if (x != y) return x < y;
    } else {
      if (a.front() != b.front()) return a.front() < b.front();
      a.remove_prefix(1);
      b.remove_prefix(1);
    }
  }
  return a.size() < b.size();
}

constexpr const char* kReadable = "a regular file, or a pipe of the shell: /dev/stdin, <(command)";

[[noreturn]] void refuse_file(const fs::path& path, const std::string& message,
                              const std::string& allowed = {}) {
  throw InputError({.file = path.string(), .message = message, .allowed = allowed});
}

// A named pipe is refused, since opening it waits for a writer that may never come; so are devices,
// which may never end. A pipe that the shell opened has its writer.
PathKind readable_kind(const fs::path& path, bool own) {
  const PathKind kind = kind_of_path(path);
  switch (kind) {
    case PathKind::missing:
      refuse_file(path, "no such file");
    case PathKind::folder:
      refuse_file(path, "is a folder", "a file");
    case PathKind::device:
      refuse_file(path, "is a device", kReadable);
    case PathKind::other:
      refuse_file(path, "is a socket or another thing that is no file", kReadable);
    case PathKind::pipe:
      if (!own) refuse_file(path, "is a named pipe, whose writer may never come", kReadable);
      return kind;
    case PathKind::regular:
      return kind;
  }
  FUSELINE_ASSERT(false, "file kind");
}

class InputStream {
 public:
  explicit InputStream(const fs::path& path) : path_(path) {
    const auto own = own_descriptor(path);
    is_pipe_ = readable_kind(path, own.has_value()) == PathKind::pipe;
    // Some files of the system, which look regular, wait for events without O_NONBLOCK.
    descriptor_ = is_pipe_ ? ::dup(*own) : ::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    if (descriptor_ < 0) refuse_file(path, std::string("cannot be read: ") + std::strerror(errno));
  }
  ~InputStream() { ::close(descriptor_); }
  InputStream(const InputStream&) = delete;
  InputStream& operator=(const InputStream&) = delete;

  [[nodiscard]] bool is_pipe() const { return is_pipe_; }
  // The number of bytes that came; 0 at the end.
  [[nodiscard]] std::size_t read(char* into, std::size_t most,
                                 std::chrono::milliseconds patience) const {
    while (true) {
      pollfd wanted = {.fd = descriptor_, .events = POLLIN, .revents = 0};
      const int ready = is_pipe_ ? ::poll(&wanted, 1, static_cast<int>(patience.count())) : 1;
      if (ready == 0) {
        refuse_file(path_, fmt::format("nothing came from the pipe for {} s",
                                       static_cast<double>(patience.count()) / 1e3));
      }
      const ssize_t count = ready < 0 ? -1 : ::read(descriptor_, into, most);
      if (count >= 0) return static_cast<std::size_t>(count);
      if (errno == EINTR) continue;
      refuse_file(path_, std::string("cannot be read: ") + std::strerror(errno));
    }
  }

 private:
  fs::path path_;
  bool is_pipe_ = false;
  int descriptor_ = -1;
};

}  // namespace

std::string read_input_file(const fs::path& path, Bytes limit, std::chrono::milliseconds patience) {
  const InputStream in(path);
  const auto most = static_cast<std::size_t>(limit.value());
  std::string text;
  std::array<char, 16384> chunk{};
  while (text.size() <= most) {
    const std::size_t count = in.read(chunk.data(), chunk.size(), patience);
    if (count == 0) break;
    text.append(chunk.data(), count);
  }
  if (text.size() > most) {
    refuse_file(path, "is too large", fmt::format("up to {} bytes", limit.value()));
  }
  if (text.empty()) {
    refuse_file(path, in.is_pipe() ? "nothing came from the pipe, which can be read only once"
                                   : "the file is empty");
  }
  return text;
}

std::vector<std::string> data_file_names(const std::string& folder, const std::string& ending) {
  std::vector<std::string> names;
  for (const fs::path& entry : folder_entries(data_dir() / folder)) {
    if (entry.extension() != ending) continue;
    std::error_code ignored;
    if (fs::is_regular_file(entry, ignored)) names.push_back(entry.stem().string());
  }
  std::sort(names.begin(), names.end(), natural_less);
  return names;
}

bool looks_like_path(const std::string& text) {
  return text.find('/') != std::string::npos || text.ends_with(".toml") ||
         text.ends_with(".json") || text.ends_with(".block");
}

fs::path find_data_file(const std::string& name_or_path, const DataFileKind& kind,
                        const std::map<std::string, std::string>& aliases) {
  const auto shipped = [&kind](const std::string& name) {
    return data_dir() / kind.folder / (name + kind.ending);
  };
  std::vector<std::string> names = data_file_names(kind.folder, kind.ending);
  if (std::find(names.begin(), names.end(), name_or_path) != names.end()) {
    return shipped(name_or_path);
  }
  if (!kind.unlisted.empty()) {
    const std::vector<std::string> more = data_file_names(kind.unlisted, kind.ending);
    if (std::find(more.begin(), more.end(), name_or_path) != more.end())
      return data_dir() / kind.unlisted / (name_or_path + kind.ending);
    names.insert(names.end(), more.begin(), more.end());
  }
  if (const auto alias = aliases.find(name_or_path); alias != aliases.end()) {
    return shipped(alias->second);
  }
  const bool path = looks_like_path(name_or_path);
  try {
    if (!name_or_path.empty() && kind_of_path(name_or_path) != PathKind::missing) {
      return name_or_path;
    }
  } catch (const InputError&) {
    // No permission, or links in a circle; a mere name can be too long for a file's.
    std::error_code missing;
    if (path || fs::exists(fs::symlink_status(name_or_path, missing))) throw;
  }
  const std::string allowed =
      fmt::format("{}, or a path", fmt::join(data_file_names(kind.folder, kind.ending), ", "));
  for (const auto& [alias, name] : aliases) names.push_back(alias);
  // Where a path is wrong the folder may be right or not; only its last part is compared.
  const std::string compared = path ? fs::path(name_or_path).stem().string() : name_or_path;
  throw InputError({.field = kind.field,
                    .value = name_or_path,
                    .message = path ? "no such file" : "unknown " + kind.field,
                    .allowed = allowed,
                    .nearest = nearest_name(compared, names)});
}

fs::path relative_to_file(const std::string& path, const fs::path& file) {
  return (file.parent_path() / path).lexically_normal();
}

}  // namespace fuseline
