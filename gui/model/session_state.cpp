// What a window remembers outside its sessions: recent files, autosaved work.
#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <fstream>
#include <string_view>

#include "base/output_file.h"
#include "base/temporary_folder.h"
#include "gui/model/session_file.h"

namespace fuseline::gui {

namespace {

namespace fs = std::filesystem;

constexpr std::string_view kPrefix = "autosave-";
constexpr std::string_view kOriginal = "# unsaved changes of ";

std::vector<std::string> lines_of_file(const fs::path& file) {
  std::vector<std::string> lines;
  std::error_code missing;
  if (!fs::is_regular_file(file, missing)) return lines;  // opening a pipe would wait
  std::ifstream in(file);
  for (std::string line; std::getline(in, line);) {
    if (!line.empty()) lines.push_back(line);
  }
  return lines;
}

// The process in a name like autosave-123.toml; 0 when the name is another.
pid_t owner_of(const fs::path& file) {
  const std::string name = file.stem().string();
  if (!name.starts_with(kPrefix) || file.extension() != ".toml") return 0;
  pid_t owner = 0;
  const auto [end, error] =
      std::from_chars(name.data() + kPrefix.size(), name.data() + name.size(), owner);
  return error == std::errc() && end == name.data() + name.size() ? owner : 0;
}

// Takes the lock of a file; -1 when another program holds it, or the file is not there.
int take_lock(const fs::path& file) {
  const int handle = ::open(file.c_str(), O_RDONLY | O_CLOEXEC);
  if (handle >= 0 && ::flock(handle, LOCK_EX | LOCK_NB) != 0) {
    ::close(handle);
    return -1;
  }
  return handle;
}

// Whether the window that wrote the file runs.
bool is_running(const fs::path& autosave, pid_t owner) {
  if (owner == getpid()) return true;
  const int handle = take_lock(autosave);
  if (handle < 0) return true;
  ::close(handle);
  return false;
}

}  // namespace

fs::path state_folder() {
  const char* state = std::getenv("XDG_STATE_HOME");
  const char* home = std::getenv("HOME");
  fs::path folder = state != nullptr && *state != '\0' ? fs::path(state)
                    : home != nullptr && *home != '\0' ? fs::path(home) / ".local" / "state"
                                                       : folder_for_temporaries();
  folder /= "fuseline";
  std::error_code error;
  fs::create_directories(folder, error);
  return folder;
}

RecentFiles::RecentFiles(fs::path folder) : file_(std::move(folder) / "recent.txt") {}

std::vector<std::string> RecentFiles::lines() const { return lines_of_file(file_); }

void RecentFiles::store(const std::vector<std::string>& lines) const {
  std::string text;
  for (const std::string& line : lines) text += line + "\n";
  replace_file(file_, text);
}

void RecentFiles::add(const fs::path& path) {
  const std::string full = fs::absolute(path).lexically_normal().string();
  std::vector<std::string> all = lines();
  std::erase(all, full);
  all.insert(all.begin(), full);
  if (all.size() > kMost) all.resize(kMost);
  store(all);
}

void RecentFiles::clear() { store({}); }

std::vector<fs::path> RecentFiles::list() const {
  std::vector<fs::path> paths;
  for (const std::string& line : lines()) {
    std::error_code error;
    if (fs::exists(line, error)) paths.emplace_back(line);
  }
  return paths;
}

Autosave::Autosave(fs::path folder)
    : folder_(std::move(folder)),
      file_(folder_ / (std::string(kPrefix) + std::to_string(getpid()) + ".toml")) {}

Autosave::~Autosave() { unlock(); }

void Autosave::unlock() {
  if (lock_ >= 0) ::close(lock_);
  lock_ = -1;
}

void Autosave::store(const Document& document, const fs::path& original) {
  std::string text = document_text(document, folder_);
  if (!original.empty()) {
    text = std::string(kOriginal) + fs::absolute(original).string() + "\n" + text;
  }
  replace_file(file_, text);
  unlock();  // of the file that was replaced
  lock_ = take_lock(file_);
}

void Autosave::discard() {
  unlock();
  std::error_code error;
  fs::remove(file_, error);
}

std::vector<Autosave::Left> Autosave::left_behind() const {
  using Dated = std::pair<fs::file_time_type, Left>;
  std::vector<Dated> found;
  std::error_code error;
  for (fs::directory_iterator at(folder_, error), end; !error && at != end; at.increment(error)) {
    const fs::directory_entry& entry = *at;
    const pid_t owner = owner_of(entry.path());
    std::error_code other;
    if (owner == 0 || is_running(entry.path(), owner) || !entry.is_regular_file(other)) continue;
    Left left{entry.path(), {}};
    const std::vector<std::string> lines = lines_of_file(entry.path());
    if (!lines.empty() && lines.front().starts_with(kOriginal)) {
      left.original = lines.front().substr(kOriginal.size());
    }
    found.emplace_back(entry.last_write_time(other), std::move(left));
  }
  std::ranges::stable_sort(found, std::greater<>(), &Dated::first);
  std::vector<Left> out;
  for (Dated& dated : found) out.push_back(std::move(dated.second));
  return out;
}

}  // namespace fuseline::gui
