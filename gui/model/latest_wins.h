// Work off the caller's thread where only the newest request matters.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <optional>
#include <stop_token>
#include <utility>

#include "gui/model/lent_threads.h"

namespace fuseline::gui {

using Progress = std::function<void(std::size_t done, std::size_t total)>;

// Thrown by work that has seen its stop token: there is no result, and nobody is told.
struct Cancelled {};

inline void throw_if_stopped(const std::stop_token& stop) {
  if (stop.stop_requested()) throw Cancelled{};
}

// At most one request is worked on, on a thread that is lent for it. A new request stops the one
// that runs and takes the place of the one that waits, so at most one waits. Callbacks run on the
// lent thread, without a lock: they may submit, and pass results on to their own thread. There, a
// result whose id is not latest() any more has been overtaken on its way and is dropped by the
// receiver.
template <class Request, class Result>
class LatestWins {
 public:
  using Id = std::uint64_t;
  using Work = std::function<Result(const Request&, std::stop_token, const Progress&)>;
  struct Callbacks {
    std::function<void(Id, Result)> done;
    std::function<void(Id, std::exception_ptr)> failed{};
    std::function<void(Id, std::size_t done, std::size_t total)> progress{};
  };

  LatestWins(Work work, Callbacks callbacks)
      : work_(std::move(work)), callbacks_(std::move(callbacks)) {}
  ~LatestWins() {
    cancel();
    wait_idle();
  }
  LatestWins(const LatestWins&) = delete;
  LatestWins& operator=(const LatestWins&) = delete;

  Id submit(Request request) {
    const std::lock_guard lock(mutex_);
    running_.request_stop();
    waiting_ = std::move(request);
    if (!busy_) threads_.run([this] { work_all(); });
    busy_ = true;
    return ++latest_;
  }
  // Stops what runs, forgets what waits: neither is delivered.
  void cancel() {
    const std::lock_guard lock(mutex_);
    running_.request_stop();
    waiting_.reset();
    ++latest_;
  }
  [[nodiscard]] Id latest() const {
    const std::lock_guard lock(mutex_);
    return latest_;
  }
  // Returns when nothing runs or waits and all callbacks have returned.
  void wait_idle() {
    std::unique_lock lock(mutex_);
    idle_.wait(lock, [this] { return !busy_; });
  }

 private:
  void work_all() {
    std::unique_lock lock(mutex_);
    while (waiting_) {
      const Request request = std::move(*waiting_);
      waiting_.reset();
      running_ = std::stop_source();
      const Id id = latest_;
      const std::stop_token stop = running_.get_token();
      lock.unlock();
      run(request, id, stop);
      lock.lock();
    }
    busy_ = false;
    idle_.notify_all();  // under the lock: nothing of this may be touched once it is released
  }

  void run(const Request& request, Id id, const std::stop_token& stop) {
    const Progress progress = [&](std::size_t done, std::size_t total) {
      if (callbacks_.progress && latest() == id) callbacks_.progress(id, done, total);
    };
    try {
      Result result = work_(request, stop, progress);
      if (latest() == id) callbacks_.done(id, std::move(result));
    } catch (const Cancelled&) {
    } catch (...) {
      if (callbacks_.failed && latest() == id) callbacks_.failed(id, std::current_exception());
    }
  }

  Work work_;
  Callbacks callbacks_;
  LentThreads& threads_ = LentThreads::shared();  // ends after all that it works for
  mutable std::mutex mutex_;
  std::condition_variable idle_;
  std::optional<Request> waiting_;
  std::stop_source running_;
  Id latest_ = 0;
  bool busy_ = false;  // a thread works, or will
};

}  // namespace fuseline::gui
