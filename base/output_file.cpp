#include "base/output_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <ctime>
#include <optional>
#include <random>
#include <system_error>

#include <fmt/format.h>

#include "base/error.h"
#include "base/path_kind.h"

namespace fuseline {

namespace {

namespace fs = std::filesystem;

[[noreturn]] void fail(const fs::path& path, const std::string& message) {
  throw InputError({.file = path.string(),
                    .message = message,
                    .allowed = "a file in a folder that exists and can be written"});
}

std::string reason(int error) { return std::string("cannot be written: ") + std::strerror(error); }

class Descriptor {
 public:
  explicit Descriptor(int number) : number_(number) {}
  ~Descriptor() {
    if (number_ >= 0) ::close(number_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;

  [[nodiscard]] int number() const { return number_; }
  // Some file systems report only here that a disk is full. 0 or the error.
  [[nodiscard]] int close() {
    const int closed = ::close(number_);
    number_ = -1;
    return closed == 0 || errno == EINTR ? 0 : errno;
  }

 private:
  int number_;
};

// A pipe whose reader has gone must give an error, not end the program.
class NoPipeSignal {
 public:
  NoPipeSignal() {
    sigemptyset(&pipe_);
    sigaddset(&pipe_, SIGPIPE);
    pthread_sigmask(SIG_BLOCK, &pipe_, &before_);
  }
  ~NoPipeSignal() {
    const timespec at_once{};
    if (sigismember(&before_, SIGPIPE) == 0) sigtimedwait(&pipe_, nullptr, &at_once);
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }
  NoPipeSignal(const NoPipeSignal&) = delete;
  NoPipeSignal& operator=(const NoPipeSignal&) = delete;

 private:
  sigset_t pipe_{}, before_{};
};

// 0 or the error.
int write_all(int descriptor, const std::string& text) {
  for (std::size_t done = 0; done < text.size();) {
    const ssize_t count = ::write(descriptor, text.data() + done, text.size() - done);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return errno;
    done += static_cast<std::size_t>(count);
  }
  return 0;
}

// Not every file system can; 0 or the error.
int sync(int descriptor) {
  if (::fsync(descriptor) == 0 || errno == EINVAL || errno == ENOSYS || errno == EROFS) return 0;
  return errno;
}

// Where the text goes: to a file that a new one replaces, or as a stream.
struct Target {
  fs::path path;
  std::optional<int> descriptor;  // our own
  bool is_stream = false;
  bool exists = false;
};

fs::path folder_of(const fs::path& path) {
  return path.has_parent_path() ? path.parent_path() : fs::path(".");
}

PathKind kind_at(const fs::path& path, const fs::path& named) {
  try {
    return kind_of_path(path);
  } catch (const InputError&) {
    std::error_code error;
    static_cast<void>(fs::status(path, error));
    fail(named, "cannot be written: " + error.message());
  }
}

void check_folder(const fs::path& target, const fs::path& named) {
  const PathKind kind = kind_at(folder_of(target), named);
  if (kind == PathKind::missing) fail(named, "its folder does not exist");
  if (kind != PathKind::folder) fail(named, "is below something that is no folder");
}

Target target_of(const fs::path& path) {
  if (path.empty()) fail(path, "is empty");
  if (const auto own = own_descriptor(path)) return {path, own, true, true};
  Target target;
  target.path = end_of_links(path);
  switch (kind_at(path, path)) {
    case PathKind::missing:
      check_folder(target.path, path);
      return target;
    case PathKind::regular:
      target.exists = true;
      break;
    case PathKind::pipe:
      target.is_stream = target.exists = true;
      break;
    case PathKind::device: {
      struct stat status {};
      if (::stat(path.c_str(), &status) == 0 && S_ISBLK(status.st_mode)) fail(path, "is a disk");
      target.is_stream = target.exists = true;
      break;
    }
    case PathKind::folder:
      fail(path, "is a folder");
    case PathKind::other:
      fail(path, "is a socket or another thing that is no file");
  }
  if (::faccessat(AT_FDCWD, path.c_str(), W_OK, AT_EACCESS) != 0) fail(path, reason(errno));
  return target;
}

// A new file beside the target, removed unless it takes the target's place. Its name is nobody
// else's: it is made only where there is none. (mkstemp would make it unreadable for others.)
class Draft {
 public:
  Draft(const Target& target, const fs::path& named) : file_(make(target, named)) {
    struct stat status {};
    if (!target.exists || ::stat(target.path.c_str(), &status) != 0) return;
    static_cast<void>(::fchown(file_.number(), status.st_uid, status.st_gid));  // ours, if not
    static_cast<void>(::fchmod(file_.number(), status.st_mode & 0777U));
  }
  ~Draft() {
    if (!path_.empty()) ::unlink(path_.c_str());
  }
  Draft(const Draft&) = delete;
  Draft& operator=(const Draft&) = delete;

  void take_place_of(const Target& target, const std::string& text, const fs::path& named) {
    int error = write_all(file_.number(), text);
    if (error == 0) error = sync(file_.number());
    if (const int closing = file_.close(); error == 0) error = closing;
    if (error == 0 && ::rename(path_.c_str(), target.path.c_str()) != 0) error = errno;
    if (error != 0) fail(named, reason(error));
    path_.clear();
    sync_folder(folder_of(target.path));
  }

 private:
  int make(const Target& target, const fs::path& named) {
    constexpr int kTries = 100;
    std::random_device random;
    int error = EEXIST;
    for (int i = 0; i < kTries && error == EEXIST; ++i) {
      path_ = folder_of(target.path) / fmt::format(".fuseline-{:08x}.part", random());
      const int file = ::open(path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
      if (file >= 0) return file;
      error = errno;
    }
    path_.clear();
    fail(named, reason(error));
  }

  fs::path path_;
  Descriptor file_;
};

void write_stream(const Target& target, const std::string& text) {
  // Without O_NONBLOCK, opening a pipe waits for a reader.
  const int number =
      target.descriptor ? ::dup(*target.descriptor)
                        : ::open(target.path.c_str(), O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
  if (number < 0 && errno == ENXIO && !target.descriptor) {
    throw InputError({.file = target.path.string(),
                      .message = "is a pipe, and no program reads from it",
                      .allowed = "a pipe whose reader is there first, or a file"});
  }
  if (number < 0) fail(target.path, reason(errno));
  Descriptor stream(number);
  if (!target.descriptor) {
    ::fcntl(number, F_SETFL, ::fcntl(number, F_GETFL) & ~O_NONBLOCK);
  }
  const NoPipeSignal guard;
  int error = write_all(number, text);
  if (const int closing = stream.close(); error == 0) error = closing;
  if (error != 0) fail(target.path, reason(error));
}

}  // namespace

void replace_file(const fs::path& path, const std::string& text) {
  const Target target = target_of(path);
  if (target.is_stream) return write_stream(target, text);
  Draft(target, path).take_place_of(target, text, path);
}

void check_replaceable(const fs::path& path) {
  const Target target = target_of(path);
  if (!target.is_stream) const Draft tried(target, path);
}

void sync_folder(const fs::path& folder) {
  const Descriptor list(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (list.number() >= 0) static_cast<void>(sync(list.number()));
}

}  // namespace fuseline
