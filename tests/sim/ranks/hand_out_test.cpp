// Points of work on one rank; several ranks are tests/cli/sweep_ranks_test.cpp.
#include <atomic>
#include <map>
#include <numeric>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/ranks/hand_out.h"
#include "tests/support/problem_of.h"

namespace fuseline {
namespace {

std::vector<std::size_t> points(std::size_t count) {
  std::vector<std::size_t> all(count);
  std::iota(all.begin(), all.end(), 0);
  return all;
}

TEST(HandOut, TakesEveryPointOnce) {
  for (const std::size_t threads : {1U, 3U}) {
    Ranks ranks;
    std::map<std::size_t, std::string> taken;
    HandOut how;
    how.threads = threads;
    how.work = [](std::size_t point) { return "of " + std::to_string(point); };
    how.take = [&](std::size_t point, const std::string& text) {
      EXPECT_TRUE(taken.emplace(point, text).second);
    };
    EXPECT_TRUE(hand_out(ranks, points(40), how));
    ASSERT_EQ(taken.size(), 40U);
    for (const auto& [point, text] : taken) EXPECT_EQ(text, "of " + std::to_string(point));
  }
}

TEST(HandOut, ThrowsWhatWorkOrTakingThrew) {
  Ranks ranks;
  HandOut how;
  how.threads = 2;
  how.work = [](std::size_t point) -> std::string {
    if (point == 5) throw InputError({.field = "point", .value = "5", .message = "is wrong"});
    return "";
  };
  how.take = [](std::size_t, const std::string&) {};
  EXPECT_EQ(test::problem_of([&] { hand_out(ranks, points(10), how); }).value, "5");
  how.work = [](std::size_t) { return std::string(); };
  how.take = [](std::size_t point, const std::string&) {
    if (point == 3) throw InputError({.message = "the disk is full"});
  };
  EXPECT_EQ(test::problem_of([&] { hand_out(ranks, points(10), how); }).message,
            "the disk is full");
}

TEST(HandOut, StopsWhenItIsTold) {
  Ranks ranks;
  std::atomic<bool> stop = false;
  HandOut how;
  how.threads = 1;
  how.stop = &stop;
  how.work = [&](std::size_t point) {
    if (point == 4) stop = true;
    return std::string();
  };
  std::size_t taken = 0;
  how.take = [&](std::size_t, const std::string&) { ++taken; };
  EXPECT_FALSE(hand_out(ranks, points(10), how));
  EXPECT_EQ(taken, 5U);  // what was finished is taken
}

TEST(MixedRanks, AreRefusedByName) {
  refuse_mixed_ranks({"a", "a"});
  const InputProblem p = test::problem_of([] { refuse_mixed_ranks({"a", "b", "a", "b"}); });
  EXPECT_EQ(p.value, "1, 3");
  EXPECT_THAT(p.message, testing::HasSubstr("'b'"));
}

}  // namespace
}  // namespace fuseline
