// Code that a page of the handbook quotes is the code of the file that it names. A block of ```cpp
// or
// ```toml belongs to the file that the last link of the paragraph before it leads to; a line `...`
// stands for any lines of the file.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "tests/cli/cli_run.h"

namespace fuseline {
namespace {

namespace fs = std::filesystem;

const fs::path kRoot = FUSELINE_SOURCE_DIR;
const fs::path kPage = kRoot / "docs/handbook/07-extending.md";
const fs::path kBlocksPage = kRoot / "docs/handbook/08-blocks.md";

std::vector<std::string> lines_of_file(const fs::path& path) {
  std::ifstream in(path);
  std::stringstream text;
  text << in.rdbuf();
  return lines_of(text.str());
}

struct Quote {
  std::string file;  // as the link writes it; empty where the paragraph before has no link
  std::vector<std::string> code{};
  std::size_t line = 0;  // of the page, 1-based
};

std::string last_link(const std::string& paragraph) {
  const std::size_t begin = paragraph.rfind("](");
  if (begin == std::string::npos) return {};
  return paragraph.substr(begin + 2, paragraph.find(')', begin) - begin - 2);
}

std::vector<Quote> quotes_of(const std::vector<std::string>& page) {
  std::vector<Quote> out;
  std::string paragraph, before;  // the text so far of this paragraph, and the last whole one
  for (std::size_t i = 0; i < page.size(); ++i) {
    if (page[i].starts_with("```")) {
      const bool code = page[i] == "```cpp" || page[i] == "```toml" || page[i] == "```block";
      Quote quote{.file = last_link(paragraph.empty() ? before : paragraph), .line = i + 1};
      for (++i; i < page.size() && page[i] != "```"; ++i) quote.code.push_back(page[i]);
      if (code) out.push_back(quote);
      paragraph = before = "";
    } else if (page[i].empty()) {
      if (!paragraph.empty()) before = paragraph;
      paragraph.clear();
    } else {
      paragraph += page[i] + "\n";
    }
  }
  return out;
}

// The first quoted line that the file does not have where it should be; empty: all are there.
std::string missing_line(const std::vector<std::string>& code,
                         const std::vector<std::string>& file) {
  auto at = file.begin();
  bool anywhere = true;  // whether lines of the file may be left out here
  for (auto line = code.begin(); line != code.end();) {
    if (*line == "...") {
      anywhere = true;
      ++line;
      continue;
    }
    // What stands together is together in the file.
    const auto end = std::find(line, code.end(), "...");
    const auto found = anywhere ? std::search(at, file.end(), line, end) : at;
    if (found == file.end()) {
      // Name the line at which the longest beginning ends.
      auto longest = line;
      for (auto from = at; from != file.end(); ++from) {
        const auto stop = std::mismatch(line, end, from, file.end()).first;
        if (stop - line > longest - line) longest = stop;
      }
      return longest->empty() ? "(an empty line)" : *longest;
    }
    at = found + (end - line);
    line = end;
    anywhere = false;
  }
  return {};
}

TEST(QuotedCode, IsThatOfTheFileThatIsNamed) {
  for (const fs::path& page : {kPage, kBlocksPage}) {
    const std::vector<Quote> quotes = quotes_of(lines_of_file(page));
    EXPECT_FALSE(quotes.empty()) << page;
    for (const Quote& quote : quotes) {
      SCOPED_TRACE(page.string() + ":" + std::to_string(quote.line));
      const fs::path file = page.parent_path() / quote.file;
      ASSERT_TRUE(!quote.file.empty() && fs::is_regular_file(file))
          << "no link to a file stands before this code";
      EXPECT_EQ(missing_line(quote.code, lines_of_file(file)), "") << "is not in " << file;
    }
  }
}

TEST(QuotedCode, ComesFromEveryFileOfTheExample) {
  std::set<fs::path> quoted;
  for (const Quote& quote : quotes_of(lines_of_file(kPage)))
    quoted.insert(fs::weakly_canonical(kPage.parent_path() / quote.file));
  std::size_t files = 0;
  for (const auto& entry : fs::directory_iterator(kRoot / "tests/extension")) {
    ++files;
    EXPECT_TRUE(quoted.contains(fs::weakly_canonical(entry.path()))) << entry.path();
  }
  EXPECT_EQ(files, 7U) << "six things, one file each, and the test of them";
}

TEST(QuotedCode, AChangedALostAndAMovedLineAreFound) {
  const std::vector<std::string> file{"a", "b", "", "c", "d"};
  EXPECT_EQ(missing_line({"a", "b", "", "c"}, file), "");
  EXPECT_EQ(missing_line({"a", "...", "d"}, file), "");
  EXPECT_EQ(missing_line({"b", "...", "c", "d"}, file), "");
  EXPECT_EQ(missing_line({"a", "B"}, file), "B");
  EXPECT_EQ(missing_line({"b", "c"}, file), "c") << "a line between them is left out silently";
  EXPECT_EQ(missing_line({"c", "...", "a"}, file), "a") << "not in the file's order";
}

TEST(QuotedCode, BelongsToTheLastLinkBeforeIt) {
  const std::vector<std::string> page{"See [x](x.h).",
                                      "",
                                      "From [y](y.h)",
                                      "or [z](z.toml):",
                                      "",
                                      "```cpp",
                                      "code",
                                      "```",
                                      "```toml",
                                      "more",
                                      "```",
                                      "```sh",
                                      "no code",
                                      "```"};
  const std::vector<Quote> quotes = quotes_of(page);
  ASSERT_EQ(quotes.size(), 2U);
  EXPECT_EQ(quotes[0].file, "z.toml");
  EXPECT_THAT(quotes[0].code, ::testing::ElementsAre("code"));
  EXPECT_EQ(quotes[1].file, "") << "no paragraph stands between the blocks";
}

}  // namespace
}  // namespace fuseline
