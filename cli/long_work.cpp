#include "cli/long_work.h"

#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>

#include <fmt/format.h>

namespace fuseline {

namespace {

constexpr std::chrono::seconds kSilent{2};
constexpr std::chrono::seconds kBetweenLines{30};

std::atomic<bool> interrupted = false;
void interrupt(int) {
  interrupted = true;
  std::signal(SIGINT, SIG_DFL);
}

}  // namespace

InterruptGuard::InterruptGuard() : before_(std::signal(SIGINT, interrupt)) { interrupted = false; }
InterruptGuard::~InterruptGuard() { std::signal(SIGINT, before_); }

const std::atomic<bool>* InterruptGuard::flag() { return &interrupted; }

void end_as_interrupted() {
  std::signal(SIGINT, SIG_DFL);
  std::raise(SIGINT);
}

ProgressBar::ProgressBar() : terminal_(isatty(STDERR_FILENO) != 0), next_(Clock::now() + kSilent) {}

void ProgressBar::show(const std::string& what, double done) {
  const Clock::time_point now = Clock::now();
  if (now < next_) return;
  if (!terminal_) {
    next_ = now + kBetweenLines;
    fmt::print(stderr, "fuseline: still working: {:.0f} % ({})\n", done * 100, what);
    return;
  }
  constexpr int kWidth = 30;
  const int filled = static_cast<int>(std::clamp(done, 0.0, 1.0) * kWidth);
  const std::string bar(static_cast<std::size_t>(filled), '#');
  fmt::print(stderr, "\r\x1b[K[{:<{}}] {:3.0f} %  {}", bar, kWidth, done * 100, what);
  std::fflush(stderr);
  drawn_ = true;
}

void ProgressBar::clear() {
  if (drawn_) fmt::print(stderr, "\r\x1b[K");
  drawn_ = false;
}

}  // namespace fuseline
