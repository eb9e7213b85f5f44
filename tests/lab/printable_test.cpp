#include "lab/printable.h"

#include <gtest/gtest.h>

namespace fuseline::lab {
namespace {

TEST(Printable, KeepsTextsAndLineEnds) {
  EXPECT_EQ(printable("12.5 MB\nµs → 中 😀"), "12.5 MB\nµs → 中 😀");
  EXPECT_EQ(printable(""), "");
}

TEST(Printable, BlanksWhatATerminalObeys) {
  EXPECT_EQ(printable("a\033[31mb\rc\x7f"), "a [31mb c ");
  EXPECT_EQ(printable("\xc2\x9b"
                      "31m"),
            " 31m");
}

// Lone and cut bytes, overlong forms, surrogates, and what lies beyond Unicode.
TEST(Printable, ReplacesWhatIsNoUtf8) {
  EXPECT_EQ(printable("\xff"), "?");
  EXPECT_EQ(printable("a\xc3"), "a?");
  EXPECT_EQ(printable("\xe2\x86"), std::string("?") + "?");
  EXPECT_EQ(printable("\xc0\xaf"), std::string("?") + "?");
  EXPECT_EQ(printable("\xed\xa0\x80"), std::string("?") + "?" + "?");
  EXPECT_EQ(printable("\xf4\x90\x80\x80"), std::string("?") + "?" + "?" + "?");
}

}  // namespace
}  // namespace fuseline::lab
