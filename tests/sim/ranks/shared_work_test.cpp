// Pieces of work on one rank with a journal; several ranks are tests/cli/shared_ranks_test.cpp.
#include <atomic>
#include <filesystem>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "sim/ranks/shared_work.h"

namespace fuseline {
namespace {

using testing::ElementsAre;

std::filesystem::path new_journal(const char* name) {
  const std::filesystem::path path = std::filesystem::path(testing::TempDir()) / name;
  std::filesystem::remove(path);
  return path;
}

TEST(SharedWork, GivesTextsInOrder) {
  Ranks ranks;
  RankSharing sharing(ranks, nullptr, 3);
  const SharedTexts out =
      sharing.texts("squares", 4, [](std::size_t i) { return std::to_string(i * i); }, {});
  EXPECT_TRUE(out.all);
  EXPECT_THAT(out.texts, ElementsAre("0", "1", "4", "9"));
  EXPECT_EQ(sharing.width(), 3U);
}

TEST(SharedWork, GoesOnWithWhatIsFinished) {
  const std::filesystem::path path = new_journal("shared.journal");
  Ranks ranks;
  {  // The second of two calls fails at its third piece.
    Journal journal(path, "work", false);
    RankSharing sharing(ranks, &journal, 1);
    sharing.texts("first", 2, [](std::size_t i) { return "f" + std::to_string(i); }, {});
    EXPECT_THROW(sharing.texts("second", 4,
                               [](std::size_t i) {
                                 if (i == 2) throw MissingError("no");
                                 return "s" + std::to_string(i);
                               },
                               {}),
                 MissingError);
  }
  Journal journal(path, "work", true);
  RankSharing sharing(ranks, &journal, 1);
  std::set<std::string> done;
  const auto noted = [&](const char* name) {
    return [&done, name](std::size_t i) {
      done.insert(name + std::to_string(i));
      return name + std::to_string(i);
    };
  };
  EXPECT_THAT(sharing.texts("first", 2, noted("f"), {}).texts, ElementsAre("f0", "f1"));
  EXPECT_THAT(sharing.texts("second", 4, noted("s"), {}).texts,
              ElementsAre("s0", "s1", "s2", "s3"));
  EXPECT_FALSE(done.contains("f0"));
  EXPECT_FALSE(done.contains("s0"));
  EXPECT_TRUE(done.contains("s2"));
}

// Work that went another way the second time: pieces of another name are done again.
TEST(SharedWork, DoesPiecesOfAnotherNameAgain) {
  const std::filesystem::path path = new_journal("other.journal");
  Ranks ranks;
  {
    Journal journal(path, "work", false);
    RankSharing sharing(ranks, &journal, 1);
    sharing.texts("one way", 2, [](std::size_t) { return "old"; }, {});
  }
  Journal journal(path, "work", true);
  RankSharing sharing(ranks, &journal, 1);
  const auto fresh = [](std::size_t) { return "new"; };
  EXPECT_THAT(sharing.texts("another way", 2, fresh, {}).texts, ElementsAre("new", "new"));
}

TEST(SharedWork, StopsBetweenPieces) {
  Ranks ranks;
  std::atomic<bool> stop = false;
  RankSharing sharing(ranks, nullptr, 1, &stop);
  const SharedTexts out = sharing.texts("stopped", 5,
                                        [&](std::size_t i) {
                                          stop = i == 1;
                                          return "x";
                                        },
                                        {});
  EXPECT_FALSE(out.all);
  EXPECT_EQ(out.texts.size(), 5U);
  EXPECT_EQ(out.texts.back(), "");
}

}  // namespace
}  // namespace fuseline
