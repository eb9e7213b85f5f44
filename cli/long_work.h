// What commands that may take long share: a progress bar, and Ctrl-C that leaves nothing behind.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "sim/executor/parallel.h"

namespace fuseline {

// While it lives, the first Ctrl-C sets the flag that the work looks at; a second one ends the
// program as usual.
class InterruptGuard {
 public:
  InterruptGuard();
  ~InterruptGuard();
  InterruptGuard(const InterruptGuard&) = delete;
  InterruptGuard& operator=(const InterruptGuard&) = delete;

  [[nodiscard]] static const std::atomic<bool>* flag();

 private:
  void (*before_)(int);
};

// After the work has stopped: ends the program as if the signal had not been held up, so that
// whoever started us sees that we were interrupted.
void end_as_interrupted();

// Says on standard error how far work is that takes longer than two seconds: as a bar where that is
// a terminal, gone at the end; elsewhere as a line after two seconds, and another one every so
// often. Shorter work stays silent.
class ProgressBar {
 public:
  ProgressBar();
  ~ProgressBar();
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;

  // What is being done, and the share of the whole work.
  void show(const std::string& what, double done);
  // The same of work whose end is not known.
  void show(const std::string& what);
  void clear();

 private:
  using Clock = std::chrono::steady_clock;
  bool is_time();  // to say something
  bool terminal_;
  bool used_ = false;
  bool drawn_ = false;
  Clock::time_point next_;  // nothing is shown before
};

// While it lives, it says on standard error after two seconds that the program still works, unless
// a ProgressBar says more. A thread of its own does this, so that no command can forget it.
class StillWorking {
 public:
  StillWorking();
  ~StillWorking();
  StillWorking(const StillWorking&) = delete;
  StillWorking& operator=(const StillWorking&) = delete;

  // For a command that waits for a person, and so may last for ever.
  static void hush();

 private:
  void watch();

  std::mutex mutex_;
  std::condition_variable over_;
  bool done_ = false;
  std::thread thread_;  // none where the system gives none
};

using ShowProgress = std::function<void(const std::string&, double)>;

// The result of work(show), with a progress bar. When Ctrl-C stopped it (executor::Cancelled), the
// program ends.
template <class Work>
auto run_long_work(Work&& work) {
  std::optional<decltype(work(ShowProgress{}))> result;
  {
    const InterruptGuard guard;
    ProgressBar bar;
    try {
      result = work([&bar](const std::string& what, double done) { bar.show(what, done); });
    } catch (const executor::Cancelled&) {
      // The guard and the bar go first.
    }
  }
  if (!result) end_as_interrupted();
  return std::move(*result);
}

}  // namespace fuseline
