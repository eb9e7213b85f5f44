#include "base/printable.h"

#include <gtest/gtest.h>

#include <random>
#include <string>

#include "base/error.h"

namespace fuseline {
namespace {

TEST(Printable, LeavesTextAsItIs) {
  EXPECT_EQ(printable("a b/c_1.toml", 100), "a b/c_1.toml");
  EXPECT_EQ(printable("µs, 雪, 😀", 100), "µs, 雪, 😀");
}

TEST(Printable, EscapesWhatATerminalObeys) {
  EXPECT_EQ(printable("a\x1b[31mb\x07", 100), "a\\x1b[31mb\\x07");
  EXPECT_EQ(printable("a\nb\tc\r", 100), "a\\nb\\tc\\r");
  EXPECT_EQ(printable("\xC2\x9B", 100), "\\x9b");  // the one-byte form of ESC [
  EXPECT_EQ(printable("a\xE2\x80\xAE"
                      "b",
                      100),
            "a\\u202eb");  // from right to left
  EXPECT_EQ(printable(std::string(1, '\0'), 100), "\\x00");
}

TEST(Printable, EscapesBytesThatAreNoUtf8) {
  EXPECT_EQ(printable("\xff\xfe", 100), "\\xff\\xfe");
  EXPECT_EQ(printable("\xC0\x80", 100), "\\xc0\\x80");                    // not the shortest form
  EXPECT_EQ(printable("\xED\xA0\x80", 100), "\\xed\\xa0\\x80");           // a surrogate
  EXPECT_EQ(printable("\xF4\x90\x80\x80", 100), "\\xf4\\x90\\x80\\x80");  // beyond U+10FFFF
  EXPECT_EQ(printable("\xE2\x82", 100), "\\xe2\\x82");                    // cut short
}

TEST(Printable, CutsWhatIsTooLong) {
  EXPECT_EQ(printable(std::string(200'000, 'a'), 5), "aaaaa... (200000 bytes)");
  EXPECT_EQ(printable("aaaaa", 5), "aaaaa");
  EXPECT_EQ(printable("aaaaµµ", 5), "aaaaµ... (8 bytes)") << "no half characters";
}

TEST(Printable, LinesStayWhereTheyAreMeant) {
  EXPECT_EQ(printable_lines("a\n\tb\x1b", 100), "a\n\tb\\x1b");
}

TEST(Printable, IsOneLineWhateverTheBytes) {
  std::mt19937 random(5);
  for (int round = 0; round < 2000; ++round) {
    std::string text(random() % 20, '\0');
    for (char& c : text) c = static_cast<char>(random());
    const std::string once = printable(text, 1000);
    EXPECT_EQ(printable(once, 1000), once);
    for (const char c : once) EXPECT_GE(static_cast<unsigned char>(c), ' ');
  }
}

// What the user wrote goes through here, in whichever part of a message it stands.
TEST(FormatProblem, PrintsNothingRaw) {
  const std::string nasty = "x\x1b[2J\n\xff" + std::string(200'000, 'y');
  const std::string text = format_problem({.file = nasty,
                                           .field = nasty,
                                           .value = nasty,
                                           .message = "is wrong",
                                           .allowed = nasty,
                                           .nearest = nasty});
  EXPECT_LT(text.size(), 10'000U);
  for (const char c : text) EXPECT_GE(static_cast<unsigned char>(c), ' ');
  EXPECT_NE(text.find("x\\x1b[2J\\n\\xffyyy"), std::string::npos);
  EXPECT_NE(text.find("... (200007 bytes)"), std::string::npos);
}

TEST(FormatProblem, KeepsTheLinesOfAMessage) {
  EXPECT_EQ(format_problem({.file = "f.cpp", .message = "does not compile:\n  a\n  b"}),
            "f.cpp: does not compile:\n  a\n  b");
}

TEST(NearestName, OfVeryLongNamesIsQuick) {
  const std::string longest(50'000'000, 'a');
  EXPECT_EQ(nearest_name("model", {longest, "modle"}), "modle");
  EXPECT_EQ(nearest_name(longest, {"model"}), "");
}

TEST(Printable, MarksTheCharacterOfAByte) {
  // "⌈" is three bytes, "·" two: the mark counts characters.
  const MarkedLine line = marked_line("a[M,⌈D/2⌉] · b", 14, 60, 120);
  EXPECT_EQ(line.text, "a[M,⌈D/2⌉] · b");
  EXPECT_EQ(line.mark, 10U);
  EXPECT_EQ(marked_line("x\ty\x1b\xff", 3, 60, 120).text, "x y??");
  // A long line is cut ahead of the mark and behind it, never within a character.
  const std::string dots = std::string(200, '.');
  const MarkedLine cut = marked_line(dots + "·here" + dots, 202, 4, 10);
  EXPECT_EQ(cut.text, "..·here..");
  EXPECT_EQ(cut.mark, 3U);
  EXPECT_EQ(marked_line("ab", 5, 60, 120).mark, 5U);  // behind the end
}

}  // namespace
}  // namespace fuseline
