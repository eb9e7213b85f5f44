#include "gui/model/lent_threads.h"

#include <algorithm>
#include <condition_variable>
#include <iterator>
#include <list>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

namespace fuseline::gui {

namespace {

// One thread, and the work that it was given.
struct Lent {
  std::condition_variable given;
  std::function<void()> work;
  bool ends = false;
  std::thread thread;
};

}  // namespace

struct LentThreads::State {
  mutable std::mutex mutex;
  std::list<Lent> all;
  std::vector<Lent*> waiting;  // the one that came back last stands last

  void serve(Lent& own) {
    std::unique_lock lock(mutex);
    while (true) {
      own.given.wait(lock, [&] { return own.work != nullptr || own.ends; });
      if (own.work == nullptr) return;
      std::function<void()> work = std::exchange(own.work, nullptr);
      lock.unlock();
      work();
      work = nullptr;  // what it holds ends outside of the lock
      lock.lock();
      if (!own.ends) waiting.push_back(&own);
    }
  }
};

LentThreads::LentThreads() : state_(std::make_unique<State>()) {}

LentThreads::~LentThreads() {
  // Work that still runs may be ending those that wait, which then finds none, and may begin more
  // work, for which the next round waits.
  while (true) {
    std::list<Lent> ended;
    {
      const std::lock_guard lock(state_->mutex);
      ended.swap(state_->all);
      state_->waiting.clear();
      for (Lent& lent : ended) {
        lent.ends = true;
        lent.given.notify_one();
      }
    }
    if (ended.empty()) return;
    for (Lent& lent : ended) lent.thread.join();
  }
}

void LentThreads::run(std::function<void()> work) {
  const std::lock_guard lock(state_->mutex);
  if (state_->waiting.empty()) {
    Lent& fresh = state_->all.emplace_back();
    fresh.work = std::move(work);
    try {
      fresh.thread = std::thread([state = state_.get(), &fresh] { state->serve(fresh); });
    } catch (...) {  // the system gives no more threads
      state_->all.pop_back();
      throw;
    }
    return;
  }
  Lent& lent = *state_->waiting.back();
  state_->waiting.pop_back();
  lent.work = std::move(work);
  lent.given.notify_one();
}

void LentThreads::end_waiting() {
  std::list<Lent> ended;
  {
    const std::lock_guard lock(state_->mutex);
    for (auto lent = state_->all.begin(); lent != state_->all.end();) {
      const auto next = std::next(lent);
      if (std::ranges::find(state_->waiting, &*lent) != state_->waiting.end()) {
        lent->ends = true;
        lent->given.notify_one();
        ended.splice(ended.end(), state_->all, lent);
      }
      lent = next;
    }
    state_->waiting.clear();
  }
  for (Lent& lent : ended) lent.thread.join();
}

std::size_t LentThreads::count() const {
  const std::lock_guard lock(state_->mutex);
  return state_->all.size();
}

std::size_t LentThreads::waiting() const {
  const std::lock_guard lock(state_->mutex);
  return state_->waiting.size();
}

LentThreads& LentThreads::shared() {
  static LentThreads threads;
  return threads;
}

}  // namespace fuseline::gui
