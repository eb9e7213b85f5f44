// The handbook's pages hang together: no link leads nowhere, every glossary page is in the list and
// leads back to a chapter.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "tests/cli/cli_run.h"

namespace fuseline {
namespace {

namespace fs = std::filesystem;

const fs::path kDocs = fs::path(FUSELINE_SOURCE_DIR) / "docs";

// The page without its blocks of code: a lambda's "[](" is no link.
std::string without_code(const std::string& page) {
  std::istringstream lines(page);
  std::string text;
  bool code = false;
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("```")) code = !code;
    if (!code) text += line + "\n";
  }
  return text;
}

// Targets of [text](target), without anchors and addresses of the web.
std::vector<std::string> local_links(const std::string& page) {
  std::vector<std::string> out;
  const std::string text = without_code(page);
  for (std::size_t at = 0; (at = text.find("](", at)) != std::string::npos;) {
    at += 2;
    const std::string target = text.substr(at, text.find(')', at) - at);
    const std::string file = target.substr(0, target.find('#'));
    if (!file.empty() && !file.starts_with("http")) out.push_back(file);
  }
  return out;
}

std::vector<fs::path> pages(const fs::path& folder) {
  std::vector<fs::path> out;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    if (entry.path().extension() == ".md") out.push_back(entry.path());
  }
  std::sort(out.begin(), out.end());
  return out;
}

TEST(HandbookLinks, LeadToFilesThatExist) {
  for (const char* folder : {"handbook", "reference"}) {
    const std::vector<fs::path> all = pages(kDocs / folder);
    EXPECT_GT(all.size(), 7U);
    for (const fs::path& page : all) {
      for (const std::string& link : local_links(read_text(page))) {
        EXPECT_TRUE(fs::exists(page.parent_path() / link)) << page << ": " << link;
      }
    }
  }
}

// Source files that a page names, as `model/graph.h`, move when the code is put in order.
std::vector<std::string> named_sources(const std::string& text) {
  const auto part_of_a_path = [](char c) {
    const auto letter = static_cast<unsigned char>(c);  // capitals stand for any name
    return std::islower(letter) != 0 || std::isdigit(letter) != 0 || c == '_' || c == '/' ||
           c == '.';
  };
  std::vector<std::string> found;
  for (auto begin = text.begin(); begin != text.end();) {
    begin = std::find_if(begin, text.end(), part_of_a_path);
    const auto end = std::find_if_not(begin, text.end(), part_of_a_path);
    const fs::path path(std::string(begin, end));
    const bool source =
        path.extension() == ".h" || path.extension() == ".cpp" || path.extension() == ".cuh";
    for (const char* layer : {"base", "model", "sim", "cuda", "cli", "gui", "lab", "tests"})
      if (source && path.has_parent_path() && *path.begin() == layer)
        found.push_back(path.string());
    begin = end;
  }
  return found;
}

TEST(DocumentedSources, Exist) {
  std::size_t named = 0;
  for (const fs::path& page : pages(kDocs)) {
    for (const std::string& file : named_sources(read_text(page))) {
      ++named;
      EXPECT_TRUE(fs::exists(fs::path(FUSELINE_SOURCE_DIR) / file)) << page << ": " << file;
    }
  }
  EXPECT_GT(named, 20U);  // a page that names none would prove nothing
}

TEST(DocumentedSources, AreFoundInText) {
  EXPECT_THAT(named_sources("in `model/graph.h`, sim/gpu/gpu.cpp and x.cpp; cuda/kernels/*.cuh"),
              ::testing::ElementsAre("model/graph.h", "sim/gpu/gpu.cpp"));
}

TEST(HandbookLinks, EveryTermIsListedAndLeadsToAChapter) {
  const std::string list = read_text(kDocs / "handbook/glossary/README.md");
  for (const fs::path& page : pages(kDocs / "handbook/glossary")) {
    if (page.filename() == "README.md") continue;
    EXPECT_THAT(list, ::testing::HasSubstr("(" + page.filename().string() + ")"));
    EXPECT_THAT(read_text(page), ::testing::HasSubstr("Chapter: [")) << page;
  }
}

TEST(HandbookLinks, AreFoundInText) {
  EXPECT_THAT(local_links("a [b](c.md#d), [e](#f) [g](https://h) [i](../j.md)"),
              ::testing::ElementsAre("c.md", "../j.md"));
  EXPECT_THAT(local_links("[a](b.md)\n```cpp\n[](int c) {}\n```\n[d](e.md)\n"),
              ::testing::ElementsAre("b.md", "e.md"));
}

}  // namespace
}  // namespace fuseline
