// Runs the commands that the documentation shows, and compares what they print with what it shows.
//
// A block of ```sh is run line by line where a line starts with `fuseline`; other lines are for
// people. When a block of ```text follows, it is what these commands print. A line `...` in it
// stands for any lines. With FUSELINE_UPDATE_DOCS=1 in the environment, blocks of text without
// `...` are rewritten instead.
//
// A drawing that a document shows beside such a command, `![...](x.svg)`, is the file x.svg that
// the command writes, to the byte; it is rewritten likewise.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>

#include "tests/cli/cli_run.h"

namespace fuseline {
namespace {

namespace fs = std::filesystem;

struct Example {
  std::vector<std::string> commands;
  std::optional<std::size_t> text_begin;  // lines of the document: [begin, end)
  std::size_t text_end = 0;
  std::size_t line = 0;  // of the first command, 1-based
};

std::vector<std::string> read_lines(const fs::path& path) {
  std::ifstream in(path);
  std::stringstream text;
  text << in.rdbuf();
  return lines_of(text.str());
}

std::vector<Example> examples_of(const std::vector<std::string>& lines) {
  std::vector<Example> out;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    if (lines[i] != "```sh") continue;
    Example e;
    for (++i; i < lines.size() && lines[i] != "```"; ++i) {
      if (!lines[i].starts_with("fuseline ")) continue;
      if (e.commands.empty()) e.line = i + 1;
      e.commands.push_back(lines[i]);
    }
    std::size_t next = i + 1;
    while (next < lines.size() && lines[next].empty()) ++next;
    if (next < lines.size() && lines[next] == "```text") {
      e.text_begin = next + 1;
      e.text_end = next + 1;
      while (e.text_end < lines.size() && lines[e.text_end] != "```") ++e.text_end;
    }
    if (!e.commands.empty()) out.push_back(e);
  }
  return out;
}

// Runs it with the built program first in PATH, in a folder that has scenarios/ and docs/ and can
// be written to.
CliRun run_shell(const std::string& command, const fs::path& folder) {
  const fs::path program(FUSELINE_BINARY);
  const std::string line = "cd '" + folder.string() + "' && PATH='" +
                           program.parent_path().string() + "':\"$PATH\" && {\n" + command +
                           "\n} 2>&1";
  CliRun run;
  FILE* pipe = popen(line.c_str(), "r");
  if (pipe == nullptr) return run;
  std::array<char, 4096> buffer{};
  for (std::size_t n = 0; (n = fread(buffer.data(), 1, buffer.size(), pipe)) > 0;) {
    run.out.append(buffer.data(), n);
  }
  // How far work was after two seconds is no part of what a document shows.
  const std::string progress = "fuseline: still working: ";
  for (std::size_t at = 0; (at = run.out.find(progress, at)) != std::string::npos;) {
    const bool own_line = at == 0 || run.out[at - 1] == '\n';
    if (own_line) {
      run.out.erase(at, run.out.find('\n', at) - at + 1);
    } else {
      at += progress.size();
    }
  }
  const int status = pclose(pipe);
  run.status = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  return run;
}

// `command  # exit status 2` → 2.
int expected_status(const std::string& command) {
  const std::string mark = "# exit status ";
  const std::size_t at = command.find(mark);
  return at == std::string::npos ? 0 : std::stoi(command.substr(at + mark.size()));
}

// "..." matches any number of lines.
bool matches(const std::vector<std::string>& shown, std::size_t s,
             const std::vector<std::string>& printed, std::size_t p) {
  for (; s < shown.size(); ++s, ++p) {
    if (shown[s] == "...") {
      for (std::size_t q = p; q <= printed.size(); ++q) {
        if (matches(shown, s + 1, printed, q)) return true;
      }
      return false;
    }
    if (p >= printed.size() || shown[s] != printed[p]) return false;
  }
  return p == printed.size();
}

std::vector<std::string> documents() {
  const fs::path root(FUSELINE_SOURCE_DIR);
  std::vector<std::string> out;
  if (fs::exists(root / "README.md")) out.emplace_back("README.md");
  for (const auto& entry : fs::recursive_directory_iterator(root / "docs")) {
    if (entry.path().extension() == ".md") out.push_back(fs::relative(entry.path(), root).string());
  }
  std::sort(out.begin(), out.end());
  return out;
}

// "![...](x.svg)" on a line of its own → x.svg, a file beside the document.
std::vector<std::string> shown_drawings(const std::vector<std::string>& lines) {
  std::vector<std::string> names;
  for (const std::string& line : lines) {
    const std::size_t begin = line.rfind("](");
    if (line.starts_with("![") && begin != std::string::npos && line.ends_with(".svg)") &&
        line.find('/', begin) == std::string::npos)
      names.push_back(line.substr(begin + 2, line.size() - begin - 3));
  }
  return names;
}

class DocumentedCommands : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    const fs::path root(FUSELINE_SOURCE_DIR);
    folder_ = fs::path(testing::TempDir()) / ("docs_" + std::to_string(getpid()));
    fs::remove_all(folder_);
    fs::create_directories(folder_);
    for (const char* name : {"scenarios", "docs", "README.md", "tests"}) {
      if (fs::exists(root / name)) fs::create_symlink(root / name, folder_ / name);
    }
  }
  void TearDown() override { fs::remove_all(folder_); }
  fs::path folder_;
};

TEST_P(DocumentedCommands, RunAndPrintWhatIsShown) {
  const fs::path document = fs::path(FUSELINE_SOURCE_DIR) / GetParam();
  std::vector<std::string> lines = read_lines(document);
  const bool update = std::getenv("FUSELINE_UPDATE_DOCS") != nullptr;
  std::vector<Example> examples = examples_of(lines);
  // From the back, so that rewriting leaves earlier line numbers as they are.
  for (auto e = examples.rbegin(); e != examples.rend(); ++e) {
    std::string printed;
    for (const std::string& command : e->commands) {
      SCOPED_TRACE(GetParam() + ":" + std::to_string(e->line) + ": " + command);
      const CliRun run = run_shell(command, folder_);
      EXPECT_EQ(run.status, expected_status(command)) << run.out;
      printed += run.out;
    }
    if (!e->text_begin) continue;
    const auto begin = lines.begin() + static_cast<std::ptrdiff_t>(*e->text_begin);
    const auto end = lines.begin() + static_cast<std::ptrdiff_t>(e->text_end);
    const std::vector<std::string> shown(begin, end);
    const std::vector<std::string> now = lines_of(printed);
    if (matches(shown, 0, now, 0)) continue;
    const bool has_gap = std::find(shown.begin(), shown.end(), "...") != shown.end();
    if (update && !has_gap) {
      lines.insert(lines.erase(begin, end), now.begin(), now.end());
      continue;
    }
    ADD_FAILURE() << GetParam() << ":" << *e->text_begin
                  << ": the text differs from what the commands print now:\n"
                  << printed;
  }
  for (const std::string& name : shown_drawings(lines)) {
    const std::string made = read_text(folder_ / name);
    if (made.empty()) continue;  // none of its commands draws it
    const fs::path shown = document.parent_path() / name;
    if (update) {
      std::ofstream(shown) << made;
    } else {
      EXPECT_TRUE(read_text(shown) == made)
          << GetParam() << " shows a drawing that its command draws otherwise now: " << name;
    }
  }
  if (!update) return;
  std::ofstream out(document);
  for (const std::string& line : lines) out << line << "\n";
}

// Readings without a picture are harder to remember.
TEST(DocumentedPictures, EveryChapterAndLabShowsOne) {
  int pages = 0;
  for (const std::string& page : documents()) {
    const bool chapter = page.starts_with("docs/handbook/0") || page.starts_with("docs/handbook/1");
    const bool lab = page.starts_with("docs/labs/") && page.ends_with("/README.md");
    if ((!chapter && !lab) || page == "docs/labs/README.md") continue;
    ++pages;
    const std::string text = read_text(fs::path(FUSELINE_SOURCE_DIR) / page);
    EXPECT_NE(text.find("\n!["), std::string::npos) << page << " shows no picture";
  }
  EXPECT_GT(pages, 20);
}

std::string test_name(const testing::TestParamInfo<std::string>& document) {
  std::string name = document.param;
  for (char& c : name) {
    if (std::isalnum(static_cast<unsigned char>(c)) == 0) c = '_';
  }
  return name;
}

INSTANTIATE_TEST_SUITE_P(Documents, DocumentedCommands, ::testing::ValuesIn(documents()),
                         test_name);

TEST(DocumentedText, DotsStandForAnyLines) {
  EXPECT_TRUE(matches({"a", "...", "d"}, 0, {"a", "b", "c", "d"}, 0));
  EXPECT_TRUE(matches({"a", "..."}, 0, {"a"}, 0));
  EXPECT_FALSE(matches({"a", "...", "d"}, 0, {"a", "b"}, 0));
  EXPECT_FALSE(matches({"a"}, 0, {"a", "b"}, 0));
}

}  // namespace
}  // namespace fuseline
