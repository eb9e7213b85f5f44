// Work of a view off the UI thread: the newest request wins, its result comes back on the UI
// thread.
#pragma once

#include <QMetaObject>
#include <QObject>
#include <exception>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "gui/model/kept_walks.h"
#include "gui/model/latest_wins.h"

namespace fuseline::gui {

// Used from the thread of `home`, which owns it.
template <class Request, class Result>
class Background {
 public:
  using Worker = LatestWins<Request, Result>;
  struct Callbacks {  // on the thread of `home`
    std::function<void(Result)> done;
    std::function<void(const std::string& why)> failed;
    std::function<void()> changed{};  // busy or not, progress
  };

  Background(QObject* home, typename Worker::Work work, Callbacks callbacks)
      : home_(home),
        callbacks_(std::move(callbacks)),
        worker_(std::move(work), {.done =
                                      [this](auto id, Result r) {
                                        post({id, std::move(r), nullptr});
                                      },
                                  .failed =
                                      [this](auto id, std::exception_ptr e) {
                                        post({id, std::nullopt, e});
                                      },
                                  .progress = [this](auto, std::size_t done,
                                                     std::size_t total) { note(done, total); }}) {}

  void start(Request request) {
    progress_ = 0;
    busy_ = true;
    worker_.submit(std::move(request));
    changed();
  }
  void cancel() {
    if (!busy_) return;
    worker_.cancel();
    busy_ = false;
    changed();
  }
  // Blocks until the result is there and delivered.
  void finish() {
    if (!busy_) return;
    worker_.wait_idle();
    deliver();
  }
  [[nodiscard]] bool is_busy() const { return busy_; }
  [[nodiscard]] double progress() const {  // 0 to 1
    const std::lock_guard lock(mutex_);
    return progress_;
  }

 private:
  struct Done {
    typename Worker::Id id;
    std::optional<Result> result;
    std::exception_ptr error;
  };

  void post(Done done) {
    bound_walks();  // work of a view simulates what no later edit asks for
    {
      const std::lock_guard lock(mutex_);
      inbox_.emplace(std::move(done));
    }
    QMetaObject::invokeMethod(
        home_, [this] { deliver(); }, Qt::QueuedConnection);
  }
  void note(std::size_t done, std::size_t total) {
    {
      const std::lock_guard lock(mutex_);
      progress_ = total > 0 ? static_cast<double>(done) / static_cast<double>(total) : 0;
    }
    QMetaObject::invokeMethod(
        home_, [this] { changed(); }, Qt::QueuedConnection);
  }
  void deliver() {
    std::optional<Done> done;
    {
      const std::lock_guard lock(mutex_);
      done.swap(inbox_);
    }
    if (!done || done->id != worker_.latest()) return;
    busy_ = false;
    if (done->error) {
      try {
        std::rethrow_exception(done->error);
      } catch (const std::exception& e) {
        callbacks_.failed(e.what());
      }
    } else {
      callbacks_.done(std::move(*done->result));
    }
    changed();
  }
  void changed() {
    if (callbacks_.changed) callbacks_.changed();
  }

  QObject* home_;
  Callbacks callbacks_;
  mutable std::mutex mutex_;
  std::optional<Done> inbox_;
  double progress_ = 0;
  bool busy_ = false;
  Worker worker_;  // last: its thread uses all of the above
};

}  // namespace fuseline::gui
