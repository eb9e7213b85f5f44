#include "base/parallel_for.h"

#include <gtest/gtest.h>

#include <atomic>
#include <stdexcept>
#include <thread>
#include <vector>

namespace fuseline {
namespace {

TEST(ParallelFor, DoesEveryPieceOnceOnAnyNumberOfThreads) {
  for (const unsigned threads : {1U, 2U, 7U}) {
    std::vector<int> done(1000);
    ParallelOptions options;
    options.threads = threads;
    EXPECT_TRUE(parallel_for(
        done.size(), [&](std::size_t i) { ++done[i]; }, options));
    EXPECT_EQ(done, std::vector<int>(1000, 1)) << threads;
  }
}

TEST(ParallelFor, OfNothingIsFinished) {
  EXPECT_TRUE(parallel_for(0, [](std::size_t) { FAIL(); }));
}

TEST(ParallelFor, ReportsEachPieceInTurn) {
  std::vector<std::size_t> seen;
  ParallelOptions options;
  options.threads = 3;
  options.progress = [&](std::size_t done, std::size_t count) {
    EXPECT_EQ(count, 20U);
    seen.push_back(done);
  };
  parallel_for(
      20, [](std::size_t) {}, options);
  ASSERT_EQ(seen.size(), 20U);
  for (std::size_t i = 0; i < seen.size(); ++i) EXPECT_EQ(seen[i], i + 1);
}

TEST(ParallelFor, ThrowsWhatAPieceThrew) {
  const auto work = [](std::size_t i) {
    if (i == 5) throw std::runtime_error("five");
  };
  try {
    parallel_for(100, work, {});
    FAIL() << "nothing was thrown";
  } catch (const std::runtime_error& error) {
    EXPECT_STREQ(error.what(), "five");
  }
}

TEST(ParallelFor, ThrowsTheExceptionOfTheFirstPieceWhicheverComesFirst) {
  std::atomic<int> waiting = 0;
  const auto work = [&](std::size_t i) {
    // Both pieces are under way before either throws.
    for (++waiting; waiting < 2;) std::this_thread::yield();
    throw std::runtime_error(i == 0 ? "first" : "second");
  };
  try {
    parallel_for(2, work, {.threads = 2});
    FAIL() << "nothing was thrown";
  } catch (const std::runtime_error& error) {
    EXPECT_STREQ(error.what(), "first");
  }
}

TEST(ParallelLoop, NumbersItsThreadsFromZero) {
  for (const int threads : {1, 3}) {
    std::vector<int> done(500);
    parallel_loop(threads, 500, nullptr, [&](std::int64_t i, int thread) {
      EXPECT_GE(thread, 0);
      EXPECT_LT(thread, threads);
      ++done[static_cast<std::size_t>(i)];
    });
    EXPECT_EQ(done, std::vector<int>(500, 1)) << threads;
  }
}

TEST(ParallelFor, BeginsNothingAfterTheStop) {
  std::atomic<bool> stop = false;
  int done = 0;
  ParallelOptions options;
  options.threads = 1;
  options.stop = &stop;
  const auto work = [&](std::size_t i) {
    ++done;
    if (i == 2) stop = true;
  };
  EXPECT_FALSE(parallel_for(10, work, options));
  EXPECT_EQ(done, 3);
}

}  // namespace
}  // namespace fuseline
