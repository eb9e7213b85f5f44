#include "lab/supervisor.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>

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
  // dup2 of a descriptor onto itself would leave it closed on exec.
  if (program.channel == kChannelNumber) {
    fcntl(kChannelNumber, F_SETFD, 0);
  } else if (program.channel >= 0 && dup2(program.channel, kChannelNumber) < 0) {
    _exit(kNotStartedStatus);
  }
  // SIGXCPU at the soft limit; SIGKILL a second later if that is ignored.
  limit(RLIMIT_CPU, limits.cpu_seconds, limits.cpu_seconds + 1);
  limit(RLIMIT_AS, limits.memory.value(), limits.memory.value());
  limit(RLIMIT_FSIZE, limits.file_size.value(), limits.file_size.value());
  limit(RLIMIT_STACK, limits.stack.value(), limits.stack.value());
  limit(RLIMIT_CORE, 0, 0);
  if (!limits.may_start_processes) limit(RLIMIT_NPROC, 0, 0);
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

// Whose parent dies becomes a child of this process, so each round may find new ones.
void end_everything(pid_t child, bool& reaped, SupervisorReport& report) {
  while (true) {
    kill(-child, SIGKILL);
    kill_children();
    int status = 0;
    rusage usage{};
    const pid_t gone = wait4(-1, &status, 0, &usage);
    if (gone < 0 && errno == ECHILD) return;
    if (gone == child && !reaped) {
      reaped = true;
      report = {status, usage};
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

  SupervisorReport report;
  bool reaped = false;
  while (!reaped) {
    const int signal = sigwaitinfo(&awaited, nullptr);
    if (signal == SIGTERM) break;
    int status = 0;
    rusage usage{};
    for (pid_t gone = 0; (gone = wait4(-1, &status, WNOHANG, &usage)) > 0;) {
      if (gone != child) continue;
      reaped = true;
      report = {status, usage};
    }
  }
  end_everything(child, reaped, report);
  static_cast<void>(!::write(program.report, &report, sizeof report));
  _exit(0);
}

}  // namespace fuseline::lab
