#include "cli/table.h"

#include <gtest/gtest.h>

#include "base/format.h"
#include "tests/cli/cli_run.h"

namespace fuseline {
namespace {

TEST(Table, AlignsColumnsByCharactersNotBytes) {
  EXPECT_EQ(format_table({{"name", Align::left}, {"µs"}}, {{"a", "1.5"}, {"bcdef", "10.25"}}),
            "name      µs\n"
            "────────────\n"
            "a        1.5\n"
            "bcdef  10.25\n");
}

TEST(Table, ShortensTheFirstColumnToFit) {
  const std::string text = format_table({{"name", Align::left}, {"value"}},
                                        {{std::string(150, 'x'), "1"}, {"short", "2"}});
  expect_fits_100_columns(text);
  EXPECT_NE(text.find("x…"), std::string::npos);
  EXPECT_NE(text.find("short"), std::string::npos);
}

TEST(Table, MissingCellsAreEmpty) {
  EXPECT_EQ(format_table({{"a", Align::left}, {"b"}}, {{"x"}}), "a  b\n────\nx\n");
}

TEST(Wrap, BreaksAtSpacesAndIndents) {
  const std::string text = wrap(std::string(60, 'a') + " " + std::string(60, 'b') + " c");
  EXPECT_EQ(text, std::string(60, 'a') + "\n  " + std::string(60, 'b') + " c\n");
  EXPECT_EQ(wrap(""), "\n");
}

TEST(Format, KeepsUnitsFixed) {
  EXPECT_EQ(megabytes(Bytes(1'234'567)), "1.23");
  EXPECT_EQ(megabytes(Bytes(412'345'678)), "412.3");
  EXPECT_EQ(megabytes(Bytes(12'345'678'901)), "12346");
  EXPECT_EQ(in_microseconds(microseconds(1530.29)), "1530.3");
  EXPECT_EQ(signed_percent(-0.0314), "-3.1 %");
  EXPECT_EQ(grouped(16777216), "16,777,216");
  EXPECT_EQ(grouped(512), "512");
  EXPECT_EQ(grouped(-1234), "-1,234");
}

}  // namespace
}  // namespace fuseline
