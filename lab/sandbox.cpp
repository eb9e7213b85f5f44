#include "lab/sandbox.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>

#include <fmt/format.h>

#include "model/error.h"

namespace fuseline::lab {

namespace {

constexpr int kNotStartedStatus = 127;
constexpr int kPollMilliseconds = 50;

using Resource = decltype(RLIMIT_CPU);

void limit(Resource resource, std::int64_t soft, std::int64_t hard) {
  const rlimit value{static_cast<rlim_t>(soft), static_cast<rlim_t>(hard)};
  static_cast<void>(setrlimit(resource, &value));
}

// In the child, between fork and exec: only calls that are safe there.
[[noreturn]] void become(char* const* arguments, const char* folder, int output,
                         const SandboxLimits& limits) {
  setpgid(0, 0);
  const int nothing = open("/dev/null", O_RDONLY);
  if (nothing < 0 || dup2(nothing, STDIN_FILENO) < 0 || dup2(output, STDOUT_FILENO) < 0 ||
      dup2(output, STDERR_FILENO) < 0 || chdir(folder) != 0) {
    _exit(kNotStartedStatus);
  }
  // SIGXCPU at the soft limit; SIGKILL a second later if that is ignored.
  limit(RLIMIT_CPU, limits.cpu_seconds, limits.cpu_seconds + 1);
  limit(RLIMIT_AS, limits.memory.value(), limits.memory.value());
  limit(RLIMIT_FSIZE, limits.file_size.value(), limits.file_size.value());
  limit(RLIMIT_STACK, limits.stack.value(), limits.stack.value());
  limit(RLIMIT_CORE, 0, 0);
  if (!limits.may_start_processes) limit(RLIMIT_NPROC, 0, 0);
  execvp(arguments[0], arguments);
  _exit(kNotStartedStatus);
}

std::string signal_name(int signal) {
  const char* name = sigabbrev_np(signal);
  return name == nullptr ? fmt::format("signal {}", signal) : fmt::format("SIG{}", name);
}

struct Pipe {
  std::array<int, 2> ends{-1, -1};
  Pipe() {
    if (pipe2(ends.data(), O_CLOEXEC) != 0) {
      throw MissingError(fmt::format("no pipe for a sandbox: {}", std::strerror(errno)));
    }
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;
  ~Pipe() {
    close_end(0);
    close_end(1);
  }
  void close_end(std::size_t end) {
    if (ends[end] >= 0) close(ends[end]);
    ends[end] = -1;
  }
};

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

enum class Stop : std::uint8_t { none, wall_time, flood };

// Reads until every writer is gone, the time is over, or too much has come.
Stop collect(int from, const SandboxLimits& limits, pid_t child, std::string& output, bool& reaped,
             int& status, rusage& usage) {
  using Clock = std::chrono::steady_clock;
  const auto deadline = Clock::now() + std::chrono::seconds(limits.wall_seconds);
  std::array<char, 4096> buffer{};
  while (true) {
    if (Clock::now() >= deadline) return Stop::wall_time;
    pollfd wait{from, POLLIN, 0};
    const int ready = poll(&wait, 1, kPollMilliseconds);
    if (ready > 0) {
      const ssize_t n = read(from, buffer.data(), buffer.size());
      if (n > 0) {
        output.append(buffer.data(), static_cast<std::size_t>(n));
        if (Bytes(static_cast<std::int64_t>(output.size())) > limits.output) return Stop::flood;
        continue;
      }
      if (n == 0 || errno != EINTR) return Stop::none;
    }
    // A process that it left behind may hold the pipe open: the program's own end counts.
    if (ready == 0 && !reaped && wait4(child, &status, WNOHANG, &usage) == child) reaped = true;
    if (ready == 0 && reaped) return Stop::none;
  }
}

}  // namespace

SandboxResult run_sandboxed(const std::vector<std::string>& command,
                            const std::filesystem::path& folder, const SandboxLimits& limits) {
  FUSELINE_ASSERT(!command.empty(), "a sandbox needs a program");
  std::vector<std::string> words = command;
  std::vector<char*> arguments;
  arguments.reserve(words.size() + 1);
  for (std::string& w : words) arguments.push_back(w.data());
  arguments.push_back(nullptr);
  const std::string where = folder.string();

  Pipe pipe;
  const pid_t child = fork();
  if (child < 0) throw MissingError(fmt::format("no new process: {}", std::strerror(errno)));
  if (child == 0) become(arguments.data(), where.c_str(), pipe.ends[1], limits);
  setpgid(child, child);  // whichever of the two comes first
  pipe.close_end(1);

  SandboxResult result;
  bool reaped = false;
  int status = 0;
  rusage usage{};
  const Stop stop = collect(pipe.ends[0], limits, child, result.output, reaped, status, usage);
  if (stop == Stop::flood) {
    result.output.resize(static_cast<std::size_t>(limits.output.value()));
  }
  if (stop == Stop::none && !reaped) {
    // Standard output is closed; the program may still run until the time is over.
    const auto deadline =
        std::chrono::steady_clock::now() + std::chrono::seconds(limits.wall_seconds);
    while (!reaped && std::chrono::steady_clock::now() < deadline) {
      reaped = wait4(child, &status, WNOHANG, &usage) == child;
      if (!reaped) poll(nullptr, 0, 1);
    }
  }
  const bool in_time = reaped;
  kill(-child, SIGKILL);
  while (!reaped) {
    reaped = wait4(child, &status, 0, &usage) == child || errno != EINTR;
  }

  const bool near_memory_limit = reached_memory(usage, limits);
  if (stop == Stop::flood) {
    result.ending = Ending::output_flood;
  } else if (stop == Stop::wall_time || !in_time) {
    result.ending = Ending::timeout;
  } else if (WIFSIGNALED(status)) {
    const int signal = WTERMSIG(status);
    result.signal = signal_name(signal);
    const bool cpu_is_over =
        signal == SIGXCPU || (signal == SIGKILL && usage.ru_utime.tv_sec >= limits.cpu_seconds);
    result.ending = cpu_is_over         ? Ending::timeout
                    : near_memory_limit ? Ending::memory
                                        : Ending::crashed;
  } else {
    result.exit_status = WEXITSTATUS(status);
    if (result.exit_status == kOutOfMemoryStatus) result.ending = Ending::memory;
    if (result.exit_status == kNotStartedStatus) result.ending = Ending::not_started;
  }
  return result;
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
  }
  FUSELINE_ASSERT(false, "ending");
}

}  // namespace fuseline::lab
