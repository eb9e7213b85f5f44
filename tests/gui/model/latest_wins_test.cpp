#include "gui/model/latest_wins.h"

#include <gtest/gtest.h>

#include <future>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

namespace fuseline::gui {
namespace {

using Scheduler = LatestWins<int, std::string>;

// Work that waits for a signal, so that tests decide what runs when.
class Gates {
 public:
  void open(int request) {
    const std::lock_guard lock(mutex_);
    open_.insert({request, true});
    changed_.notify_all();
  }
  // Returns when the gate is open, or throws Cancelled when stopped.
  void pass(int request, const std::stop_token& stop) {
    std::unique_lock lock(mutex_);
    started_[request].set_value();
    changed_.wait(lock, stop, [&] { return open_.contains(request); });
    throw_if_stopped(stop);
  }
  void wait_until_started(int request) {
    std::future<void> future;
    {
      const std::lock_guard lock(mutex_);
      future = started_[request].get_future();
    }
    future.wait();
  }

 private:
  std::mutex mutex_;
  std::condition_variable_any changed_;
  std::map<int, bool> open_;
  std::map<int, std::promise<void>> started_;
};

struct Deliveries {
  std::mutex mutex;
  std::vector<std::string> results;
  std::vector<std::string> failures;
  std::vector<std::size_t> progress;
};

Scheduler::Callbacks into(Deliveries& d) {
  Scheduler::Callbacks callbacks;
  callbacks.done = [&d](Scheduler::Id id, const std::string& result) {
    const std::lock_guard lock(d.mutex);
    d.results.push_back(std::to_string(id) + ":" + result);
  };
  callbacks.failed = [&d](Scheduler::Id, const std::exception_ptr& error) {
    const std::lock_guard lock(d.mutex);
    try {
      std::rethrow_exception(error);
    } catch (const std::exception& e) {
      d.failures.emplace_back(e.what());
    }
  };
  callbacks.progress = [&d](Scheduler::Id, std::size_t done, std::size_t) {
    const std::lock_guard lock(d.mutex);
    d.progress.push_back(done);
  };
  return callbacks;
}

TEST(LatestWins, DeliversAResultWithItsId) {
  Deliveries d;
  Scheduler s([](int r, const std::stop_token&, const Progress&) { return std::to_string(r * 2); },
              into(d));
  const Scheduler::Id id = s.submit(21);
  s.wait_idle();
  EXPECT_EQ(d.results, (std::vector<std::string>{std::to_string(id) + ":42"}));
}

TEST(LatestWins, ANewRequestStopsTheRunningOneAndReplacesTheWaitingOne) {
  Deliveries d;
  Gates gates;
  std::vector<int> started;
  Scheduler s(
      [&](int r, const std::stop_token& stop, const Progress&) {
        started.push_back(r);
        gates.pass(r, stop);
        return std::to_string(r);
      },
      into(d));
  gates.open(3);
  s.submit(1);
  gates.wait_until_started(1);
  s.submit(2);  // stops 1; may or may not begin before 3 takes its place
  const Scheduler::Id last = s.submit(3);
  s.wait_idle();
  EXPECT_EQ(d.results, (std::vector<std::string>{std::to_string(last) + ":3"}));
  EXPECT_EQ(started.front(), 1);
  EXPECT_EQ(started.back(), 3);
}

TEST(LatestWins, AResultThatDidNotSeeTheStopIsNotDeliveredEither) {
  Deliveries d;
  Gates gates;
  Scheduler s(
      [&](int r, const std::stop_token&, const Progress&) {
        if (r == 1) gates.pass(1, {});  // deaf to stop requests
        return std::to_string(r);
      },
      into(d));
  s.submit(1);
  gates.wait_until_started(1);
  const Scheduler::Id second = s.submit(2);
  gates.open(1);
  s.wait_idle();
  EXPECT_EQ(d.results, (std::vector<std::string>{std::to_string(second) + ":2"}));
}

TEST(LatestWins, CancelDeliversNothing) {
  Deliveries d;
  Gates gates;
  Scheduler s(
      [&](int r, const std::stop_token& stop, const Progress&) {
        gates.pass(r, stop);
        return std::to_string(r);
      },
      into(d));
  s.submit(1);
  gates.wait_until_started(1);
  s.cancel();
  s.wait_idle();
  EXPECT_TRUE(d.results.empty());
  EXPECT_TRUE(d.failures.empty());
}

TEST(LatestWins, ReportsExceptionsAndGoesOn) {
  Deliveries d;
  Scheduler s(
      [](int r, const std::stop_token&, const Progress&) -> std::string {
        if (r == 1) throw std::runtime_error("broken");
        return "fine";
      },
      into(d));
  s.submit(1);
  s.wait_idle();
  s.submit(2);
  s.wait_idle();
  EXPECT_EQ(d.failures, (std::vector<std::string>{"broken"}));
  EXPECT_EQ(d.results.size(), 1U);
}

TEST(LatestWins, PassesProgressOn) {
  Deliveries d;
  Scheduler s(
      [](int, const std::stop_token&, const Progress& progress) {
        for (std::size_t i = 1; i <= 3; ++i) progress(i, 3);
        return std::string("done");
      },
      into(d));
  s.submit(0);
  s.wait_idle();
  EXPECT_EQ(d.progress, (std::vector<std::size_t>{1, 2, 3}));
}

TEST(LatestWins, ADestructorStopsWhatRuns) {
  Deliveries d;
  Gates gates;
  {
    Scheduler s(
        [&](int r, const std::stop_token& stop, const Progress&) {
          gates.pass(r, stop);
          return std::to_string(r);
        },
        into(d));
    s.submit(1);
    gates.wait_until_started(1);
  }
  EXPECT_TRUE(d.results.empty());
}

TEST(LatestWins, ManyRequestsInARowEndWithTheLast) {
  Deliveries d;
  Scheduler s([](int r, const std::stop_token&, const Progress&) { return std::to_string(r); },
              into(d));
  for (int i = 0; i < 1000; ++i) s.submit(i);
  s.wait_idle();
  ASSERT_FALSE(d.results.empty());
  EXPECT_EQ(d.results.back(), "1000:999");
}

}  // namespace
}  // namespace fuseline::gui
