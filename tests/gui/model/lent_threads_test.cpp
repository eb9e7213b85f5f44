#include "gui/model/lent_threads.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <future>
#include <memory>
#include <thread>
#include <vector>

#include "gui/model/latest_wins.h"

namespace fuseline::gui {
namespace {

TEST(LentThreads, WorkInARowTakesOneThread) {
  LentThreads threads;
  std::thread::id first;
  for (int i = 0; i < 20; ++i) {
    std::promise<std::thread::id> ran;
    threads.run([&] { ran.set_value(std::this_thread::get_id()); });
    const std::thread::id id = ran.get_future().get();
    if (i == 0) first = id;
    // On its way back it is not lent yet.
    while (threads.waiting() < threads.count()) std::this_thread::yield();
    EXPECT_EQ(id, first);
  }
  EXPECT_EQ(threads.count(), 1U);
}

TEST(LentThreads, NothingWaitsForAnotherPiecesEnd) {
  LentThreads threads;
  std::promise<void> second;
  std::promise<void> both;
  threads.run([&] {
    second.get_future().wait();
    both.set_value();
  });
  threads.run([&] { second.set_value(); });
  both.get_future().wait();
  EXPECT_EQ(threads.count(), 2U);
}

TEST(LentThreads, TheEndWaitsForAllWork) {
  std::atomic<int> done = 0;
  {
    LentThreads threads;
    for (int i = 0; i < 8; ++i)
      threads.run([&] {
        std::this_thread::sleep_for(std::chrono::milliseconds(2));
        ++done;
      });
  }
  EXPECT_EQ(done, 8);
}

TEST(LentThreads, ThoseThatWaitCanBeEnded) {
  LentThreads threads;
  std::promise<void> go;
  std::promise<void> ended;
  std::shared_future<void> may_go = go.get_future().share();
  threads.run([&, may_go] {
    may_go.wait();
    threads.end_waiting();  // by work that is lent a thread itself
    ended.set_value();
  });
  for (int i = 0; i < 3; ++i) threads.run([may_go] { may_go.wait(); });
  std::promise<void> done;
  threads.run([&] { done.set_value(); });
  done.get_future().wait();
  while (threads.waiting() < 1) std::this_thread::yield();
  EXPECT_EQ(threads.count(), 5U);
  threads.end_waiting();
  EXPECT_EQ(threads.count(), 4U) << "those that work go on";
  EXPECT_EQ(threads.waiting(), 0U);
  go.set_value();
  ended.get_future().wait();
  while (threads.waiting() < threads.count()) std::this_thread::yield();
  threads.end_waiting();
  EXPECT_EQ(threads.count(), 0U);
  std::promise<void> again;
  threads.run([&] { again.set_value(); });
  again.get_future().wait();
}

// A window may close while it rests, and while views ask for more.
TEST(LentThreads, TheEndWaitsForWorkThatEndsOthersOrBeginsMore) {
  std::atomic<int> done = 0;
  for (int round = 0; round < 200; ++round) {
    LentThreads threads;
    for (int i = 0; i < 3; ++i) threads.run([&] { ++done; });
    threads.run([&] {
      threads.end_waiting();
      threads.run([&] { ++done; });
    });
  }
  EXPECT_EQ(done, 200 * 4);
}

// Each view had a thread of its own, and each of these a team of threads for its loops.
TEST(LentThreads, ManyWorkersThatWorkInTurnShareThem) {
  const std::size_t before = LentThreads::shared().count();
  std::vector<std::unique_ptr<LatestWins<int, int>>> all;
  for (int i = 0; i < 20; ++i)
    all.push_back(std::make_unique<LatestWins<int, int>>(
        [](int r, const std::stop_token&, const Progress&) { return r; },
        LatestWins<int, int>::Callbacks{[](auto, int) {}}));
  for (auto& worker : all) {
    worker->submit(1);
    worker->wait_idle();
  }
  // A thread may still be on its way back when the next worker asks.
  EXPECT_LE(LentThreads::shared().count(), std::max<std::size_t>(before, 3));
}

}  // namespace
}  // namespace fuseline::gui
