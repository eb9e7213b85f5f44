#include "lab/supervisor.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>

#include "lab/walls.h"

namespace fuseline::lab {

namespace {

using Resource = decltype(RLIMIT_CPU);

void limit(Resource resource, std::int64_t soft, std::int64_t hard) {
  const rlimit value{static_cast<rlim_t>(soft), static_cast<rlim_t>(hard)};
  static_cast<void>(setrlimit(resource, &value));
}

[[noreturn]] void become(const SupervisedProgram& program, const SandboxLimits& limits) {
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  setpgid(0, 0);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  const int nothing = open("/dev/null", O_RDONLY);
  if (nothing < 0 || dup2(nothing, STDIN_FILENO) < 0 || dup2(program.output, STDOUT_FILENO) < 0 ||
      dup2(program.output, STDERR_FILENO) < 0 || chdir(program.folder) != 0) {
    _exit(kNotStartedStatus);
  }
  // Out of the way first, so that neither takes the other's place.
  constexpr int kFirstFree = kFilterNumber + 1;
  const auto give = [](int from, int number) {
    if (from < 0) return;
    const int apart = fcntl(from, F_DUPFD_CLOEXEC, kFirstFree);
    if (apart < 0) _exit(kNotStartedStatus);
    if (dup2(apart, number) < 0) _exit(kNotStartedStatus);
  };
  const int filter = program.filter < 0 ? -1 : fcntl(program.filter, F_DUPFD_CLOEXEC, kFirstFree);
  if (program.filter >= 0 && filter < 0) _exit(kNotStartedStatus);
  give(program.channel, kChannelNumber);
  give(filter, kFilterNumber);
  // SIGXCPU at the soft limit; SIGKILL a second later if that is ignored.
  limit(RLIMIT_CPU, limits.cpu_seconds, limits.cpu_seconds + 1);
  limit(RLIMIT_AS, limits.memory.value(), limits.memory.value());
  limit(RLIMIT_FSIZE, limits.file_size.value(), limits.file_size.value());
  limit(RLIMIT_STACK, limits.stack.value(), limits.stack.value());
  limit(RLIMIT_CORE, 0, 0);
  // Within walls the filter of calls does this; bwrap itself starts a process first.
  if (!limits.may_start_processes && program.filter < 0) limit(RLIMIT_NPROC, 0, 0);
  execvpe(program.arguments[0], program.arguments, program.environment);
  _exit(kNotStartedStatus);
}

// SIGKILL for every child, adopted ones too: the kernel lists them.
void kill_children() {
  const int list = open("/proc/thread-self/children", O_RDONLY | O_CLOEXEC);
  if (list < 0) return;
  std::array<char, 4096> text{};
  pid_t pid = 0;
  for (ssize_t n = 0; (n = read(list, text.data(), text.size())) > 0;) {
    for (ssize_t i = 0; i < n; ++i) {
      const char c = text[static_cast<std::size_t>(i)];
      if (c >= '0' && c <= '9') {
        pid = pid * 10 + (c - '0');
        continue;
      }
      if (pid > 0) kill(pid, SIGKILL);
      pid = 0;
    }
  }
  close(list);
}

void add_usage(rusage& sum, const rusage& usage) {
  sum.ru_utime.tv_sec += usage.ru_utime.tv_sec;
  sum.ru_utime.tv_usec += usage.ru_utime.tv_usec;
  if (sum.ru_utime.tv_usec >= 1'000'000) {
    sum.ru_utime.tv_usec -= 1'000'000;
    ++sum.ru_utime.tv_sec;
  }
  if (usage.ru_maxrss > sum.ru_maxrss) sum.ru_maxrss = usage.ru_maxrss;
}

// Of descriptors of other checks that run beside this one the supervisor keeps none: their programs
// would not see that they were closed.
void close_all_but(int kept) {
  if (kept > 3) close_range(3, static_cast<unsigned>(kept) - 1, 0);
  close_range(static_cast<unsigned>(kept) + 1, ~0U, 0);
}

// Whose parent dies becomes a child of this process, so each round may find new ones.
void end_everything(pid_t child, bool& reaped, SupervisorReport& report) {
  while (true) {
    kill(-child, SIGKILL);
    kill_children();
    int status = 0;
    rusage usage{};
    const pid_t gone = wait4(-1, &status, 0, &usage);
    if (gone < 0 && errno == ECHILD) return;
    if (gone < 0) continue;
    add_usage(report.usage, usage);
    if (gone == child && !reaped) {
      reaped = true;
      report.status = status;
    }
  }
}

}  // namespace

void supervise(const SupervisedProgram& program, const SandboxLimits& limits) {
  setpgid(0, 0);  // Ctrl-C on the terminal goes to the checker
  sigset_t awaited;
  sigemptyset(&awaited);
  sigaddset(&awaited, SIGTERM);
  sigaddset(&awaited, SIGCHLD);
  sigprocmask(SIG_BLOCK, &awaited, nullptr);
  prctl(PR_SET_NAME, "lab-supervisor");  // who ends fuseline by its name does not mean this
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (getppid() != program.checker) _exit(0);  // it died before the line above

  const pid_t child = fork();
  if (child == 0) become(program, limits);
  if (child < 0) _exit(0);
  setpgid(child, child);  // whichever of the two comes first
  close_all_but(program.report);

  SupervisorReport report;
  bool reaped = false;
  while (!reaped) {
    const int signal = sigwaitinfo(&awaited, nullptr);
    if (signal == SIGTERM) break;
    int status = 0;
    rusage usage{};
    for (pid_t gone = 0; (gone = wait4(-1, &status, WNOHANG, &usage)) > 0;) {
      add_usage(report.usage, usage);
      if (gone != child) continue;
      reaped = true;
      report.status = status;
    }
  }
  end_everything(child, reaped, report);
  static_cast<void>(!::write(program.report, &report, sizeof report));
  _exit(0);
}

}  // namespace fuseline::lab
