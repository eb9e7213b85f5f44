#include "cuda/run/rival.h"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/json_text.h"
#include "sim/executor/parallel.h"

// POSIX leaves its declaration to the program.
extern char** environ;

namespace fuseline::cuda {

namespace {

using Clock = std::chrono::steady_clock;
using nlohmann::json;

constexpr std::chrono::milliseconds kLook{50};   // between two looks at the stop flag
constexpr std::size_t kLongestLine = 1U << 22;   // bytes; 100,000 times take 2 MB
constexpr std::size_t kQuoted = 160;             // bytes of a line in a message
constexpr std::int64_t kTailOfErrors = 1 << 14;  // bytes in which the last words are looked for

class File {
 public:
  explicit File(int fd = -1) : fd_(fd) {}
  ~File() { close(); }
  File(File&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  File& operator=(File&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  [[nodiscard]] int get() const { return fd_; }
  void close() {
    if (fd_ >= 0) ::close(std::exchange(fd_, -1));
  }

 private:
  int fd_;
};

[[noreturn]] void fail_to_start(const char* what, int error) {
  throw MissingError(fmt::format("cannot start the rival: {}: {}", what, std::strerror(error)));
}

// A file without a name: gone with the last process that has it open.
File nameless_file() {
  std::error_code ignored;
  const char* folder = std::getenv("TMPDIR");
  std::string name =
      std::string(folder != nullptr && *folder != 0 ? folder : "/tmp") + "/fuseline-rival-XXXXXX";
  File file(mkostemp(name.data(), O_CLOEXEC));
  if (file.get() < 0) fail_to_start("a temporary file", errno);
  ::unlink(name.c_str());
  return file;
}

std::string quoted(std::string text) {
  if (text.size() > kQuoted) text = text.substr(0, kQuoted) + "...";
  // Not all of it need be UTF-8.
  for (char& c : text)
    if (static_cast<unsigned char>(c) < ' ' || static_cast<unsigned char>(c) > '~') c = '?';
  return text;
}

class SpawnActions {
 public:
  SpawnActions() { posix_spawn_file_actions_init(&actions_); }
  ~SpawnActions() { posix_spawn_file_actions_destroy(&actions_); }
  SpawnActions(const SpawnActions&) = delete;
  SpawnActions& operator=(const SpawnActions&) = delete;
  void use(const File& file, int as) {
    posix_spawn_file_actions_adddup2(&actions_, file.get(), as);
  }
  [[nodiscard]] const posix_spawn_file_actions_t* get() const { return &actions_; }

 private:
  posix_spawn_file_actions_t actions_{};
};

// A process group of its own, so that Ctrl-C in the terminal is ours alone and the shell's children
// end with it; signals as usual, whatever this program does with them.
class SpawnAttributes {
 public:
  SpawnAttributes() {
    posix_spawnattr_init(&attributes_);
    sigset_t usual, blocked;
    sigemptyset(&blocked);
    sigemptyset(&usual);
    for (const int signal : {SIGINT, SIGTERM, SIGPIPE}) sigaddset(&usual, signal);
    posix_spawnattr_setpgroup(&attributes_, 0);
    posix_spawnattr_setsigdefault(&attributes_, &usual);
    posix_spawnattr_setsigmask(&attributes_, &blocked);
    posix_spawnattr_setflags(
        &attributes_, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK);
  }
  ~SpawnAttributes() { posix_spawnattr_destroy(&attributes_); }
  SpawnAttributes(const SpawnAttributes&) = delete;
  SpawnAttributes& operator=(const SpawnAttributes&) = delete;
  [[nodiscard]] const posix_spawnattr_t* get() const { return &attributes_; }

 private:
  posix_spawnattr_t attributes_{};
};

}  // namespace

struct RivalProcess::Process {
  std::string command;
  const std::atomic<bool>* stop;
  RivalLimits limits;
  pid_t pid = -1;
  File requests{}, answers{}, errors{};
  std::string unread{};

  void start() {
    int sockets[2], pipe[2];
    // A socket, because writing to a pipe that nobody reads is a signal to the whole program.
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets) != 0)
      fail_to_start("a socket", errno);
    requests = File(sockets[0]);
    const File their_requests(sockets[1]);
    if (pipe2(pipe, O_CLOEXEC) != 0) fail_to_start("a pipe", errno);
    answers = File(pipe[0]);
    const File their_answers(pipe[1]);
    errors = nameless_file();

    SpawnActions actions;
    actions.use(their_requests, STDIN_FILENO);
    actions.use(their_answers, STDOUT_FILENO);
    actions.use(errors, STDERR_FILENO);
    const SpawnAttributes attributes;
    std::array<char*, 4> arguments = {const_cast<char*>("sh"), const_cast<char*>("-c"),
                                      command.data(), nullptr};
    const int error =
        posix_spawn(&pid, "/bin/sh", actions.get(), attributes.get(), arguments.data(), environ);
    if (error != 0) {
      pid = -1;
      fail_to_start("/bin/sh", error);
    }
  }

  void look_at_stop() const {
    if (stop != nullptr && *stop) throw executor::Cancelled("");
  }

  // The last line that is not empty of what it wrote to standard error.
  [[nodiscard]] std::string last_words() const {
    struct stat state {};
    const off_t end = ::fstat(errors.get(), &state) == 0 ? state.st_size : 0;
    const off_t begin = std::max<off_t>(0, end - kTailOfErrors);
    std::string text(static_cast<std::size_t>(std::max<off_t>(0, end - begin)), '\0');
    const ssize_t count = ::pread(errors.get(), text.data(), text.size(), begin);
    text.resize(static_cast<std::size_t>(std::max<ssize_t>(0, count)));
    text.erase(text.find_last_not_of(" \t\r\n") + 1);
    return quoted(text.substr(text.find_last_of('\n') + 1));
  }

  // Whether it has ended within that time. It stays a zombie, so that its group is still its own.
  [[nodiscard]] bool has_ended(std::chrono::milliseconds within, std::string& how) const {
    const auto until = Clock::now() + within;
    while (true) {
      siginfo_t info{};
      if (::waitid(P_PID, static_cast<id_t>(pid), &info, WEXITED | WNOHANG | WNOWAIT) != 0)
        return true;
      if (info.si_pid == pid) {
        how = fmt::format("{} {}", info.si_code == CLD_EXITED ? "exit status" : "signal",
                          info.si_status);
        return true;
      }
      if (Clock::now() >= until) return false;
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
  }

  [[noreturn]] void fail(const std::string& message) const {
    const std::string words = last_words();
    throw MissingError(message + (words.empty() ? "" : ": " + words));
  }

  [[noreturn]] void fail_at_end() const {
    std::string how = "its output is closed";
    (void)has_ended(limits.end, how);
    fail(fmt::format("the rival ended ({})", how));
  }

  std::string read_line(Clock::time_point until, const std::string& waiting_for) {
    while (true) {
      if (const auto end = unread.find('\n'); end != std::string::npos) {
        std::string line = unread.substr(0, end);
        unread.erase(0, end + 1);
        return line;
      }
      if (unread.size() > kLongestLine) fail("the rival writes lines without an end");
      look_at_stop();
      if (Clock::now() >= until) fail("the rival takes too long " + waiting_for);
      pollfd wanted = {.fd = answers.get(), .events = POLLIN, .revents = 0};
      const int ready = ::poll(&wanted, 1, static_cast<int>(kLook.count()));
      if (ready == 0 || (ready < 0 && errno == EINTR)) continue;
      std::array<char, 4096> part{};
      const ssize_t count = ::read(answers.get(), part.data(), part.size());
      if (count < 0 && errno == EINTR) continue;
      if (count <= 0) fail_at_end();
      unread.append(part.data(), static_cast<std::size_t>(count));
    }
  }

  json read_answer(Clock::time_point until, const std::string& waiting_for) {
    const std::string line = read_line(until, waiting_for);
    json answer;
    try {
      answer = parse_json(line, command);
    } catch (const InputError&) {  // said below, as for every other answer that is none
    }
    if (!answer.is_object()) fail(fmt::format("the rival says '{}', no answer", quoted(line)));
    return answer;
  }

  void write_line(std::string line) {
    line += '\n';
    for (std::size_t done = 0; done < line.size();) {
      const ssize_t count =
          ::send(requests.get(), line.data() + done, line.size() - done, MSG_NOSIGNAL);
      if (count < 0 && errno == EINTR) continue;
      if (count < 0) fail_at_end();
      done += static_cast<std::size_t>(count);
    }
  }

  void end() {
    if (pid < 0) return;
    requests.close();
    std::string how;
    if (stop == nullptr || !*stop) (void)has_ended(limits.end, how);
    ::kill(-pid, SIGKILL);
    while (::waitpid(pid, nullptr, 0) < 0 && errno == EINTR) {
    }
    pid = -1;
  }
};

RivalProcess::RivalProcess(std::string command, const std::atomic<bool>* stop, RivalLimits limits)
    : process_(std::make_unique<Process>(
          Process{.command = std::move(command), .stop = stop, .limits = limits})) {
  process_->start();
}

RivalProcess::~RivalProcess() { process_->end(); }

namespace {

// A text, or nothing where there is none or another kind of value.
std::string text_in(const json& answer, const char* key) {
  const auto found = answer.find(key);
  return found != answer.end() && found->is_string() ? found->get<std::string>() : std::string();
}

int count_in(const json& answer, const char* key) {
  const auto found = answer.find(key);
  if (found == answer.end() || !found->is_number_integer()) return 1;
  return static_cast<int>(std::clamp<std::int64_t>(found->get<std::int64_t>(), 1, 1'000'000));
}

}  // namespace

std::vector<RivalBlock> RivalProcess::get_ready(std::size_t count) {
  const auto until = Clock::now() + process_->limits.ready;
  std::vector<RivalBlock> blocks;
  while (true) {
    const json answer = process_->read_answer(until, "to get ready");
    if (answer.contains("done")) break;
    RivalBlock block{.execution = text_in(answer, "execution"),
                     .framework = text_in(answer, "framework"),
                     .layers = count_in(answer, "layers"),
                     .blocks = count_in(answer, "blocks")};
    if (answer.contains("failed")) {
      const std::string message = text_in(answer, "message");
      block.problem = message.empty() ? "it gives no reason" : quoted(message);
    } else if (!answer.contains("ready")) {
      process_->fail(fmt::format("the rival says '{}', no answer", quoted(answer.dump())));
    }
    blocks.push_back(std::move(block));
  }
  if (blocks.size() != count)
    process_->fail(
        fmt::format("the rival speaks of {} blocks, {} were wanted", blocks.size(), count));
  return blocks;
}

std::vector<Seconds> RivalProcess::replay(std::size_t block, int warm_ups, int replays) {
  process_->write_line(json{{"block", block}, {"warm_ups", warm_ups}, {"replays", replays}}.dump());
  const json answer = process_->read_answer(Clock::now() + process_->limits.answer, "to answer");
  const auto ms = answer.find("ms");
  if (ms == answer.end() || !ms->is_array() || ms->size() != static_cast<std::size_t>(replays)) {
    const std::string message = text_in(answer, "message");
    process_->fail(message.empty()
                       ? fmt::format("the rival says '{}', no times", quoted(answer.dump()))
                       : "the rival cannot: " + quoted(message));
  }
  std::vector<Seconds> times;
  for (const json& value : *ms) {
    const double each = value.is_number() ? value.get<double>() : 0.0;
    if (!(each > 0) || !std::isfinite(each))
      process_->fail(fmt::format("the rival says '{}', no time", quoted(value.dump())));
    times.push_back(each * Seconds(1e-3));
  }
  return times;
}

}  // namespace fuseline::cuda
