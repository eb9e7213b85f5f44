#include "lab/sandbox.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <map>
#include <mutex>

#include <fmt/format.h>

#include "base/error.h"
#include "base/temporary_folder.h"
#include "lab/secret.h"
#include "lab/supervisor.h"
#include "lab/walls.h"

namespace fuseline::lab {

namespace {

std::string signal_name(int signal) {
  const char* name = sigabbrev_np(signal);
  return name == nullptr ? fmt::format("signal {}", signal) : fmt::format("SIG{}", name);
}

// Two ends of a pipe or of a pair of sockets, closed when this goes.
struct Ends {
  std::array<int, 2> ends{-1, -1};
  Ends() = default;
  Ends(const Ends&) = delete;
  Ends& operator=(const Ends&) = delete;
  ~Ends() {
    close_end(0);
    close_end(1);
  }
  void open_pipe() { require(pipe2(ends.data(), O_CLOEXEC)); }
  void open_sockets() { require(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data())); }
  void close_end(std::size_t end) {
    if (ends[end] >= 0) close(ends[end]);
    ends[end] = -1;
  }

 private:
  static void require(int result) {
    if (result == 0) return;
    throw MissingError(fmt::format("no pipe for a sandbox: {}", std::strerror(errno)));
  }
};

// Pointers to texts, as exec takes them.
std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> out;
  out.reserve(texts.size() + 1);
  for (std::string& t : texts) out.push_back(t.data());
  out.push_back(nullptr);
  return out;
}

std::vector<std::string> environment() {
  const std::string secret = std::string(kSecretVariable) + "=";
  std::vector<std::string> out;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    if (!std::string_view(*entry).starts_with(secret)) out.emplace_back(*entry);
  }
  return out;
}

// Whether its pages came near the limit. The kernel counts those of the parent at the fork too, so
// a large parent makes this unknowable.
bool reached_memory(const rusage& child, const SandboxLimits& limits) {
  const auto is_near = [&](const rusage& usage) {
    return Bytes(usage.ru_maxrss * 1024) * 5 > limits.memory * 4;
  };
  rusage self{};
  getrusage(RUSAGE_SELF, &self);
  return is_near(child) && !is_near(self);
}

enum class Stop : std::uint8_t { none, wall_time, flood, channel };

// What the checker does while the program runs.
class Watch {
 public:
  Watch(int output, int channel, int report, const SandboxLimits& limits,
        const SandboxChannel* talk)
      : limits_(limits),
        talk_(talk),
        polls_{{{report, POLLIN, 0}, {output, POLLIN, 0}, {channel, POLLIN, 0}}} {}

  // Until everything has ended, the time is over, or too much has come.
  Stop run(std::string& output) {
    using Clock = std::chrono::steady_clock;
    const auto deadline = Clock::now() + std::chrono::seconds(limits_.wall_seconds);
    if (talk_ != nullptr && !send(talk_->greeting)) return Stop::channel;
    while (true) {
      const auto left =
          std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now()).count();
      if (left <= 0) return Stop::wall_time;
      const int ready = poll(polls_.data(), polls_.size(), static_cast<int>(left));
      if (ready < 0 && errno == EINTR) continue;
      if (polls_[2].revents != 0 && !converse()) return Stop::channel;
      if (polls_[1].revents != 0 && !collect(output)) return Stop::flood;
      if (ready > 0 && polls_[0].revents != 0) return drain(output);
    }
  }

 private:
  // What was written before the end is still in the pipes.
  Stop drain(std::string& output) {
    while (polls_[2].fd >= 0 && poll(&polls_[2], 1, 0) > 0) {
      if (!converse()) return Stop::channel;
    }
    while (polls_[1].fd >= 0 && poll(&polls_[1], 1, 0) > 0) {
      if (!collect(output)) return Stop::flood;
    }
    return Stop::none;
  }

  bool collect(std::string& output) {
    const ssize_t n = read(polls_[1].fd, buffer_.data(), buffer_.size());
    if (n <= 0) {
      if (n == 0 || errno != EINTR) polls_[1].fd = -1;
      return true;
    }
    output.append(buffer_.data(), static_cast<std::size_t>(n));
    return Bytes(static_cast<std::int64_t>(output.size())) <= limits_.output;
  }

  bool converse() {
    const ssize_t n = recv(polls_[2].fd, buffer_.data(), buffer_.size(), MSG_DONTWAIT);
    if (n <= 0) {
      if (n == 0 || (errno != EINTR && errno != EAGAIN)) polls_[2].fd = -1;
      return true;
    }
    reply_.clear();
    return talk_->take({buffer_.data(), static_cast<std::size_t>(n)}, reply_) && send(reply_);
  }

  // False when the program does not read. One that has ended is found out by its report.
  bool send(std::string_view text) {
    while (!text.empty()) {
      const ssize_t n = ::send(polls_[2].fd, text.data(), text.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) return errno != EAGAIN;
      text.remove_prefix(static_cast<std::size_t>(n));
    }
    return true;
  }

  const SandboxLimits& limits_;
  const SandboxChannel* talk_;
  std::array<pollfd, 3> polls_;  // report, output, channel
  std::array<char, 65536> buffer_{};
  std::string reply_;
};

// bwrap ends with 128 + N when its program was ended by signal N.
int signal_within(const SupervisorReport& report, bool walled) {
  if (WIFSIGNALED(report.status)) return WTERMSIG(report.status);
  const int status = WEXITSTATUS(report.status);
  return walled && status > 128 && sigabbrev_np(status - 128) != nullptr ? status - 128 : 0;
}

SandboxResult result_of(Stop stop, bool reported, const SupervisorReport& report,
                        const SandboxLimits& limits, bool walled) {
  SandboxResult result;
  const int signal = signal_within(report, walled);
  if (stop != Stop::none) {
    result.ending = stop == Stop::flood     ? Ending::output_flood
                    : stop == Stop::channel ? Ending::stopped
                                            : Ending::timeout;
  } else if (!reported) {
    result.ending = Ending::crashed;  // somebody has ended the supervisor
    result.signal = signal_name(SIGKILL);
  } else if (signal != 0) {
    result.signal = signal_name(signal);
    const bool cpu_is_over =
        signal == SIGXCPU ||
        (signal == SIGKILL && report.usage.ru_utime.tv_sec >= limits.cpu_seconds);
    result.ending = cpu_is_over                            ? Ending::timeout
                    : reached_memory(report.usage, limits) ? Ending::memory
                                                           : Ending::crashed;
  } else {
    result.exit_status = WEXITSTATUS(report.status);
    if (result.exit_status == kOutOfMemoryStatus) result.ending = Ending::memory;
    if (result.exit_status == kNotStartedStatus) result.ending = Ending::not_started;
  }
  return result;
}

}  // namespace

namespace {

// A descriptor that is closed when this goes.
struct OpenDescriptor {
  int number = -1;
  explicit OpenDescriptor(int n) : number(n) {}
  OpenDescriptor(const OpenDescriptor&) = delete;
  OpenDescriptor& operator=(const OpenDescriptor&) = delete;
  ~OpenDescriptor() {
    if (number >= 0) close(number);
  }
};

// `bubblewrap` empty: without walls.
SandboxResult run_within(const std::string& bubblewrap, const std::vector<std::string>& command,
                         const std::filesystem::path& folder, const SandboxLimits& limits,
                         const SandboxChannel* channel) {
  const bool walled = !bubblewrap.empty();
  const WallRules rules{.may_write = limits.file_size > Bytes(0),
                        .may_start_processes = limits.may_start_processes};
  std::vector<std::string> words =
      walled ? walled_command(bubblewrap, command, folder, rules) : command;
  if (words.empty()) {
    SandboxResult result;
    result.ending = Ending::not_started;
    return result;
  }
  std::vector<std::string> variables = walled ? walled_environment(folder) : environment();
  const OpenDescriptor filter(walled ? open_call_filter(rules) : -1);
  if (walled && filter.number < 0) throw MissingError("no memory for a sandbox's filter of calls");
  const std::vector<char*> arguments = pointers(words);
  const std::vector<char*> environment_pointers = pointers(variables);
  const std::string where = folder.string();

  Ends output, report_pipe, talk;
  output.open_pipe();
  report_pipe.open_pipe();
  if (channel != nullptr) talk.open_sockets();
  const SupervisedProgram program{.arguments = arguments.data(),
                                  .environment = environment_pointers.data(),
                                  .folder = where.c_str(),
                                  .output = output.ends[1],
                                  .channel = talk.ends[1],
                                  .filter = filter.number,
                                  .report = report_pipe.ends[1],
                                  .checker = getpid()};
  const pid_t supervisor = fork();
  if (supervisor < 0) throw MissingError(fmt::format("no new process: {}", std::strerror(errno)));
  if (supervisor == 0) supervise(program, limits);
  output.close_end(1);
  report_pipe.close_end(1);
  talk.close_end(1);

  std::string printed;
  const Stop stop =
      Watch(output.ends[0], talk.ends[0], report_pipe.ends[0], limits, channel).run(printed);
  kill(supervisor, SIGTERM);
  SupervisorReport report;
  ssize_t got = 0;
  do {
    got = read(report_pipe.ends[0], &report, sizeof report);
  } while (got < 0 && errno == EINTR);
  while (waitpid(supervisor, nullptr, 0) < 0 && errno == EINTR) {
  }

  SandboxResult result = result_of(stop, got == ssize_t{sizeof report}, report, limits, walled);
  // bwrap speaks for itself when it could not start the program.
  if (walled && result.exit_status == 1 && printed.starts_with("bwrap: ")) {
    result.ending = Ending::not_started;
  }
  if (stop == Stop::flood) printed.resize(static_cast<std::size_t>(limits.output.value()));
  result.output = std::move(printed);
  return result;
}

std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

SandboxWalls tried_walls(const std::string& bubblewrap) {
  const TemporaryFolder folder("fuseline-walls");
  SandboxLimits limits;
  limits.wall_seconds = 10;
  const SandboxResult r = run_within(bubblewrap, {"true"}, folder.path(), limits, nullptr);
  if (r.ending == Ending::finished && r.exit_status == 0) return {bubblewrap, {}};
  return {{},
          fmt::format("bubblewrap is refused here ({})",
                      r.output.empty() ? "it ended without a word" : first_line(r.output))};
}

}  // namespace

SandboxWalls sandbox_walls() {
  const std::string bubblewrap = find_bubblewrap();
  if (bubblewrap.empty()) return {{}, "bubblewrap (bwrap) is not installed"};
  static std::mutex mutex;
  static std::map<std::string, SandboxWalls> tried;
  const std::lock_guard lock(mutex);
  const auto known = tried.find(bubblewrap);
  if (known != tried.end()) return known->second;
  return tried[bubblewrap] = tried_walls(bubblewrap);
}

std::string note_without_walls() {
  const SandboxWalls walls = sandbox_walls();
  if (!walls.bubblewrap.empty()) return {};
  return fmt::format(
      "students' functions ran with limits alone, and with your rights: {}. Grade on an account of "
      "its own, or where bubblewrap works",
      walls.why_not);
}

SandboxResult run_sandboxed(const std::vector<std::string>& command,
                            const std::filesystem::path& folder, const SandboxLimits& limits,
                            const SandboxChannel* channel) {
  FUSELINE_ASSERT(!command.empty(), "a sandbox needs a program");
  const std::string walls = limits.within_walls ? sandbox_walls().bubblewrap : std::string();
  return run_within(walls, command, folder, limits, channel);
}

std::string describe(const SandboxResult& result, const SandboxLimits& limits) {
  switch (result.ending) {
    case Ending::finished:
      return {};
    case Ending::timeout:
      return fmt::format("it ran longer than {} s and was stopped: is there a loop without an end?",
                         limits.cpu_seconds);
    case Ending::memory:
      return fmt::format("it asked for more than {} MiB of memory and was stopped",
                         limits.memory.value() >> 20);
    case Ending::crashed:
      return fmt::format("it crashed with {}{}", result.signal,
                         result.signal == "SIGSEGV"
                             ? " (an index outside an array, or a recursion without an end)"
                             : "");
    case Ending::output_flood:
      return fmt::format("it printed more than {} KiB and was stopped",
                         limits.output.value() >> 10);
    case Ending::not_started:
      return "it could not be started";
    case Ending::stopped:
      return "it was stopped";
  }
  FUSELINE_ASSERT(false, "ending");
}

}  // namespace fuseline::lab
