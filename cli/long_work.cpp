#include "cli/long_work.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <new>
#include <system_error>

#include <fmt/format.h>

namespace fuseline {

namespace {

constexpr std::chrono::seconds kSilent{2};
constexpr std::chrono::seconds kBetweenLines{30};

// What bars and StillWorking know of each other, so that both do not speak at the same time.
using Clock = std::chrono::steady_clock;
std::atomic<int> bars = 0;                // that were told of a step
std::atomic<std::int64_t> said_last = 0;  // ticks of Clock; 0: nothing was said yet
std::atomic<bool> hushed = false;

void note_said(Clock::time_point now) { said_last = now.time_since_epoch().count(); }

// On a terminal: takes the place of the line that is there.
constexpr const char* kNewLine = "\r\x1b[K";

// From a thread of its own: neither memory nor an exception, whatever becomes of the text.
void put(const char* text, std::size_t size) {
  if (write(STDERR_FILENO, text, size) < 0) return;
}

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

ProgressBar::~ProgressBar() {
  if (used_) --bars;
  clear();
}

bool ProgressBar::is_time() {
  if (!used_) ++bars;
  used_ = true;
  const Clock::time_point now = Clock::now();
  if (now < next_) return false;
  if (terminal_) {
    drawn_ = true;
  } else {
    next_ = now + kBetweenLines;
  }
  note_said(now);
  return true;
}

void ProgressBar::show(const std::string& what, double done) {
  if (!is_time()) return;
  if (!terminal_) {
    fmt::print(stderr, "fuseline: still working: {:.0f} % ({})\n", done * 100, what);
    return;
  }
  constexpr int kWidth = 30;
  const int filled = static_cast<int>(std::clamp(done, 0.0, 1.0) * kWidth);
  const std::string bar(static_cast<std::size_t>(filled), '#');
  fmt::print(stderr, "{}[{:<{}}] {:3.0f} %  {}", kNewLine, bar, kWidth, done * 100, what);
  std::fflush(stderr);
}

void ProgressBar::show(const std::string& what) {
  if (!is_time()) return;
  fmt::print(stderr, "{}fuseline: still working: {}{}", terminal_ ? kNewLine : "", what,
             terminal_ ? "" : "\n");
  std::fflush(stderr);
}

void ProgressBar::clear() {
  if (drawn_) fmt::print(stderr, "{}", kNewLine);
  drawn_ = false;
}

StillWorking::StillWorking() {
  hushed = false;
  said_last = 0;
  try {
    thread_ = std::thread([this] { watch(); });
  } catch (const std::system_error&) {
    // The command is worth more than what is said about it.
  } catch (const std::bad_alloc&) {
  }
}

StillWorking::~StillWorking() {
  {
    const std::lock_guard lock(mutex_);
    done_ = true;
  }
  over_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void StillWorking::hush() { hushed = true; }

void StillWorking::watch() {
  const bool terminal = isatty(STDERR_FILENO) != 0;
  const Clock::time_point begin = Clock::now();
  // A bar knows more, so it may speak first. It is silent where its first step takes long.
  const auto next = [&] {
    const std::int64_t said = said_last;
    if (said == 0) return begin + (bars > 0 ? 2 * kSilent : kSilent);
    return Clock::time_point(Clock::duration(said)) + (terminal ? kSilent : kBetweenLines);
  };
  bool drawn = false;
  std::unique_lock lock(mutex_);
  while (!over_.wait_until(lock, next(), [this] { return done_; })) {
    if (hushed) break;
    const Clock::time_point now = Clock::now();
    if (now < next()) continue;  // a bar was made or spoke in the meantime
    std::array<char, 100> text{};
    const auto made =
        fmt::format_to_n(text.data(), text.size(), "{}fuseline: still working: {} s so far{}",
                         terminal ? kNewLine : "",
                         std::chrono::duration_cast<std::chrono::seconds>(now - begin).count(),
                         terminal ? "" : "\n");
    put(text.data(), std::min(made.size, text.size()));
    drawn = terminal;
    note_said(now);
  }
  if (drawn) put(kNewLine, std::char_traits<char>::length(kNewLine));
}

}  // namespace fuseline
