#include "sim/ranks/journal.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstring>
#include <fstream>
#include <sstream>
#include <utility>

#include <fmt/format.h>

#include "base/error.h"
#include "sim/ranks/identity.h"

namespace fuseline {

namespace {

constexpr const char* kMagic = "fuseline.journal/1 ";
constexpr int kSyncEach = 64;  // points between two waits for the disk

// One line: line ends and backslashes are written as \n and \\.
std::string on_one_line(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '\n')
      out += "\\n";
    else if (c == '\\')
      out += "\\\\";
    else
      out += c;
  }
  return out;
}

std::string in_lines(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\\' || i + 1 == text.size())
      out += text[i];
    else
      out += text[++i] == 'n' ? '\n' : '\\';
  }
  return out;
}

std::string line_of(std::size_t point, const std::string& text) {
  const std::string body = fmt::format("{} {}", point, on_one_line(text));
  return fmt::format("{} {}\n", TextHash().add(body).text(), body);
}

constexpr std::size_t kSum = 16;  // digits of a checksum

std::optional<std::pair<std::size_t, std::string>> point_of(std::string_view line) {
  if (line.size() < kSum + 3 || line[kSum] != ' ') return std::nullopt;
  const std::string_view body = line.substr(kSum + 1);
  if (TextHash().add(body).text() != line.substr(0, kSum)) return std::nullopt;
  std::size_t point = 0;
  const auto [end, error] = std::from_chars(body.data(), body.data() + body.size(), point);
  if (error != std::errc() || *end != ' ') return std::nullopt;
  return std::pair(point, in_lines(body.substr(static_cast<std::size_t>(end - body.data()) + 1)));
}

[[noreturn]] void refuse_journal(const std::filesystem::path& path, const std::string& message,
                                 const std::string& allowed) {
  throw InputError({.file = path.string(), .message = message, .allowed = allowed});
}

}  // namespace

Journal::Journal(std::filesystem::path path, const std::string& subject, bool resume)
    : path_(std::move(path)) {
  const std::string header = kMagic + on_one_line(subject) + "\n";
  const int how = O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC | (resume ? 0 : O_EXCL);
  file_ = ::open(path_.c_str(), how, 0666);
  if (file_ < 0 && errno == EEXIST)
    refuse_journal(path_, "is what an unfinished run left behind",
                   "--resume, which goes on with it; or delete it");
  if (file_ < 0)
    refuse_journal(path_, std::string("cannot be written: ") + std::strerror(errno),
                   "a file in a folder that can be written");
  try {
    if (::flock(file_, LOCK_EX | LOCK_NB) != 0)
      refuse_journal(path_, "is being written by another process", "one run at a time");
    read(header);
  } catch (...) {
    ::close(std::exchange(file_, -1));
    throw;
  }
}

Journal::~Journal() {
  if (file_ < 0) return;
  static_cast<void>(::fsync(file_));
  ::close(file_);
}

void Journal::read(const std::string& header) {
  std::ifstream in(path_, std::ios::binary);
  std::stringstream all;
  all << in.rdbuf();
  const std::string text = all.str();
  // A header that was cut off has nothing behind it.
  if (header.starts_with(text) && text.size() < header.size()) {
    if (::ftruncate(file_, 0) != 0) FUSELINE_ASSERT(false, "a file of ours can be shortened");
    append(header);
    return;
  }
  if (!text.starts_with(header))
    refuse_journal(path_, "is of other work: other options, another version or other data files",
                   "the command that began it; or delete it");
  std::size_t at = header.size();
  while (at < text.size()) {
    const std::size_t end = text.find('\n', at);
    if (end == std::string::npos) break;
    auto point = point_of(std::string_view(text).substr(at, end - at));
    if (!point) break;
    finished_.insert_or_assign(point->first, std::move(point->second));
    at = end + 1;
  }
  end_ = static_cast<long long>(at);
  if (at < text.size() && ::ftruncate(file_, end_) != 0)
    refuse_journal(path_, std::string("cannot be shortened: ") + std::strerror(errno),
                   "a file that can be written");
}

void Journal::append(const std::string& line) {
  std::size_t done = 0;
  while (done < line.size()) {
    const ssize_t count = ::write(file_, line.data() + done, line.size() - done);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) {
      const int error = errno;
      static_cast<void>(::ftruncate(file_, end_));  // half a line helps nobody
      refuse_journal(path_, std::string("cannot be written: ") + std::strerror(error),
                     "room for it; then --resume goes on with what is finished");
    }
    done += static_cast<std::size_t>(count);
  }
  end_ += static_cast<long long>(line.size());
}

void Journal::add(std::size_t point, const std::string& text) {
  append(line_of(point, text));
  finished_.insert_or_assign(point, text);
  if (++unsynced_ < kSyncEach) return;
  unsynced_ = 0;
  static_cast<void>(::fdatasync(file_));
}

void Journal::remove() {
  if (file_ < 0) return;
  ::unlink(path_.c_str());
  ::close(std::exchange(file_, -1));
}

}  // namespace fuseline
