// What is finished stays finished.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/ranks/identity.h"
#include "sim/ranks/journal.h"
#include "tests/support/problem_of.h"

namespace fuseline {
namespace {

namespace fs = std::filesystem;
using test::problem_of;
using testing::HasSubstr;

fs::path fresh(const std::string& name) {
  const fs::path path = fs::path(testing::TempDir()) / name;
  fs::remove(path);
  return path;
}

std::string bytes_of(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

void write_bytes(const fs::path& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

TEST(Journal, GivesBackWhatWasAdded) {
  const fs::path path = fresh("given.journal");
  {
    Journal journal(path, "two\nlines", false);
    journal.add(7, "a,b\nc,\\n\n");
    journal.add(2, "");
  }
  const Journal again(path, "two\nlines", true);
  ASSERT_EQ(again.finished().size(), 2U);
  EXPECT_EQ(again.finished().at(7), "a,b\nc,\\n\n");
  EXPECT_EQ(again.finished().at(2), "");
}

// Wherever the process ended: a prefix of the file gives a prefix of the points, and goes on.
TEST(Journal, LosesOnlyTheLineThatWasCutOff) {
  const fs::path path = fresh("cut.journal");
  {
    Journal journal(path, "work", false);
    for (std::size_t i = 0; i < 3; ++i) journal.add(i, "line " + std::to_string(i));
  }
  const std::string whole = bytes_of(path);
  for (std::size_t length = 0; length <= whole.size(); ++length) {
    write_bytes(path, whole.substr(0, length));
    const std::string kept = whole.substr(0, length);
    const auto lines = static_cast<std::size_t>(std::count(kept.begin(), kept.end(), '\n'));
    {
      Journal journal(path, "work", true);
      EXPECT_EQ(journal.finished().size(), lines > 0 ? lines - 1 : 0) << length;
      journal.add(9, "more");
    }
    const Journal again(path, "work", true);
    EXPECT_EQ(again.finished().at(9), "more");
    EXPECT_EQ(again.finished().size(), (lines > 0 ? lines - 1 : 0) + 1);
  }
}

TEST(Journal, LeavesOutALineWhoseBytesChanged) {
  const fs::path path = fresh("changed.journal");
  {
    Journal journal(path, "work", false);
    journal.add(0, "first");
    journal.add(1, "second");
  }
  std::string text = bytes_of(path);
  text[text.find("second")] = 'S';
  write_bytes(path, text);
  EXPECT_EQ(Journal(path, "work", true).finished().size(), 1U);
}

TEST(Journal, GoesWhenTheWorkIsDone) {
  const fs::path path = fresh("done.journal");
  Journal(path, "work", false).remove();
  EXPECT_FALSE(fs::exists(path));
}

TEST(JournalRefuses, WhatItMustNotLoseOrMix) {
  const fs::path path = fresh("refused.journal");
  {
    Journal journal(path, "work", false);
    journal.add(0, "finished");
    EXPECT_THAT(problem_of([&] { Journal(path, "work", true); }).message,
                HasSubstr("another process"));
  }
  const InputProblem there = problem_of([&] { Journal(path, "work", false); });
  EXPECT_THAT(there.message, HasSubstr("unfinished run left behind"));
  EXPECT_THAT(there.allowed, HasSubstr("--resume"));
  EXPECT_THAT(problem_of([&] { Journal(path, "other work", true); }).message,
              HasSubstr("is of other work"));
  EXPECT_EQ(Journal(path, "work", true).finished().size(), 1U);  // nothing of it was touched
  EXPECT_THAT(problem_of([&] { Journal(path / "below", "work", false); }).message,
              HasSubstr("cannot be written"));
}

TEST(TextHash, IsFnv1a) {
  // Test vectors of the hash's authors.
  EXPECT_EQ(TextHash().text(), "cbf29ce484222325");
  EXPECT_EQ(TextHash().add("a").text(), "af63dc4c8601ec8c");
  EXPECT_EQ(TextHash().add("foo").add("bar").text(), "85944171f73967e8");
}

}  // namespace
}  // namespace fuseline
