// Threads that all work off the window's thread shares.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>

namespace fuseline::gui {

// Some twenty views work in the background, seldom two at once. With a thread each, and each of
// those with a team of threads for its loops, most would only hold memory: what each thread's
// allocator keeps. So a thread is lent for a piece of work, and the one that came back last is lent
// first. Nothing waits for another piece's end: where all are lent, a new one begins.
class LentThreads {
 public:
  LentThreads();
  ~LentThreads();  // waits for all work
  LentThreads(const LentThreads&) = delete;
  LentThreads& operator=(const LentThreads&) = delete;

  // `work` must not throw.
  void run(std::function<void()> work);
  // Ends those that wait. Each keeps what it has freed for itself, piece by piece, and no page that
  // such a piece lies on can go back to the system. May be called by lent work.
  void end_waiting();
  [[nodiscard]] std::size_t count() const;  // of threads, lent or waiting
  [[nodiscard]] std::size_t waiting() const;

  // The one of the process.
  static LentThreads& shared();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace fuseline::gui
