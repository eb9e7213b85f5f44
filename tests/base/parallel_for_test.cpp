#include "base/parallel_for.h"

#include <gtest/gtest.h>

#include <stdexcept>
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
