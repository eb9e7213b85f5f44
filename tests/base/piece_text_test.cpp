// Pieces of work as texts, and back to the bit.
#include <cmath>
#include <limits>

#include <gtest/gtest.h>

#include "base/error.h"
#include "base/piece_text.h"

namespace fuseline {
namespace {

TEST(PieceText, GivesBackWhatWasWritten) {
  const double reals[] = {0.1, -0.0, 1e-310, std::numeric_limits<double>::max(),
                          std::numeric_limits<double>::infinity()};
  const std::string words[] = {"", "a b", "line\nend", std::string("\0 x", 3), "12 "};
  PieceWriter out;
  for (const double r : reals) out.real(r);
  for (const std::string& w : words) out.word(w);
  out.whole(-7).flag(true).flag(false).bits(~0ULL).real(std::nan(""));
  const std::string text = std::move(out).text();
  PieceReader in(text);
  for (const double r : reals) {
    const double got = in.real();
    EXPECT_EQ(got, r);
    EXPECT_EQ(std::signbit(got), std::signbit(r));
  }
  for (const std::string& w : words) EXPECT_EQ(in.word(), w);
  EXPECT_EQ(in.whole(), -7);
  EXPECT_TRUE(in.flag());
  EXPECT_FALSE(in.flag());
  EXPECT_EQ(in.bits(), ~0ULL);
  EXPECT_TRUE(std::isnan(in.real()));
  EXPECT_FALSE(in.more());
}

TEST(PieceText, RefusesWhatIsSomethingElse) {
  for (const char* text : {"", "12", "x ", "5 abc "}) {
    PieceReader in(text);
    EXPECT_THROW(static_cast<void>(in.word()), InternalError) << text;
  }
}

}  // namespace
}  // namespace fuseline
