#include "base/csv_text.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace fuseline {
namespace {

TEST(CsvText, WhatIsWrittenIsReadAgain) {
  const std::vector<std::string> cells = {"plain", "a,b",  "say \"no\"", "two\nlines",
                                          "# 1",   "a\rb", "",           "\"\""};
  const std::string path = "f.csv";
  std::string text;
  for (const std::string& cell : cells) text += (text.empty() ? "" : ",") + csv_cell(cell);
  EXPECT_EQ(CsvScanner(path, text).record().cells, cells);
}

TEST(CsvText, QuotesOnlyWhatNeedsThem) {
  EXPECT_EQ(csv_cell("llama2-7b"), "llama2-7b");
  EXPECT_EQ(csv_cell("a \"b\""), "\"a \"\"b\"\"\"");
  EXPECT_EQ(csv_cell("#1"), "\"#1\"");
}

TEST(CsvText, RecordsKnowTheirLineAndMaySpanSeveral) {
  const std::string text = "head\na,\"b\nc\"\nskipped\nd\n";
  const std::string path = "f.csv";
  CsvScanner scanner(path, text);
  EXPECT_EQ(scanner.rest_of_line(), "head");
  scanner.skip_line();
  const CsvRecord spanning = scanner.record();
  EXPECT_EQ(spanning.line, 2);
  EXPECT_EQ(spanning.cells, (std::vector<std::string>{"a", "b\nc"}));
  scanner.skip_line();
  EXPECT_EQ(scanner.record().line, 5);
  EXPECT_TRUE(scanner.at_end());
}

TEST(CsvText, AnOpenQuoteIsToldWithTheLineOfItsRecord) {
  const std::string path = "f.csv";
  CsvScanner scanner(path, "a\nb,\"c\n\n");
  scanner.skip_line();
  try {
    scanner.record();
    FAIL() << "nothing was thrown";
  } catch (const InputError& error) {
    EXPECT_EQ(error.problem().line, 2);
    EXPECT_EQ(error.problem().file, path);
  }
}

}  // namespace
}  // namespace fuseline
