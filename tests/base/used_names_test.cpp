#include "base/used_names.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

namespace fuseline {
namespace {

TEST(UsedNames, AreNumberedFromTwo) {
  UsedNames names(std::set<std::string>{"word"});
  EXPECT_EQ(names.unused("word"), "word_2");
  EXPECT_EQ(names.unused("y"), "y");
  EXPECT_TRUE(names.add("y"));
  EXPECT_FALSE(names.add("y"));
  EXPECT_EQ(names.unused("y"), "y_2");
  EXPECT_EQ(names.unused("y"), "y_2") << "asking uses nothing";
}

TEST(UsedNames, NumbersThatWereTakenByHandAreLeftOut) {
  UsedNames names;
  for (const char* name : {"y", "y_2", "y_4"}) EXPECT_TRUE(names.add(name));
  EXPECT_EQ(names.unused("y"), "y_3");
  EXPECT_TRUE(names.add("y_3"));
  EXPECT_EQ(names.unused("y"), "y_5");
}

// Each beginning at the first number would take 2·10^8 looks.
TEST(UsedNames, ManyOfOneNameTakeALookEach) {
  UsedNames names;
  constexpr int kNames = 20'000;
  for (int i = 0; i < kNames; ++i) ASSERT_TRUE(names.add(names.unused("y")));
  EXPECT_EQ(names.unused("y"), "y_" + std::to_string(kNames + 1));
}

}  // namespace
}  // namespace fuseline
