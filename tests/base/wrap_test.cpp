#include "base/wrap.h"

#include <gtest/gtest.h>

namespace fuseline {
namespace {

using Lines = std::vector<std::string>;

TEST(Wrap, BreaksAtSpacesAndKeepsLongWordsWhole) {
  EXPECT_EQ(broken("one two three", 7), (Lines{"one two", "three"}));
  EXPECT_EQ(broken("incomprehensible a", 4), (Lines{"incomprehensible", "a"}));
  EXPECT_EQ(broken("", 4), Lines{""});
}

TEST(Wrap, TheFirstLineHasAWidthOfItsOwn) {
  EXPECT_EQ(broken("aa bb cc dd", 2, 5), (Lines{"aa bb", "cc", "dd"}));
  EXPECT_EQ(broken("aa bb cc dd", 5, 2), (Lines{"aa", "bb cc", "dd"}));
}

TEST(Wrap, CountsCharactersNotBytes) {
  EXPECT_EQ(display_width("µs → ü"), 6U);
  EXPECT_EQ(broken("µµ üü", 5), Lines{"µµ üü"});
}

}  // namespace
}  // namespace fuseline
