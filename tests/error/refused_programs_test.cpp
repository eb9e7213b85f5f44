// Texts of programs that are refused: a remark "expect RULE: words" on a line names a mistake that
// is found there. Nothing else is found.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include "base/error.h"
#include "model/programs/legality.h"
#include "model/programs/program_file.h"
#include "model/programs/rules.h"
#include "sim/gpu/gpu.h"
#include "sim/programs/tile_check.h"

namespace fuseline {
namespace {

namespace fs = std::filesystem;

struct Expected {
  int line = 0;
  std::string rule, words;
};

std::vector<Expected> expected_in(const std::string& text) {
  std::vector<Expected> all;
  std::istringstream lines(text);
  std::string line;
  for (int number = 1; std::getline(lines, line); ++number)
    for (std::size_t at = line.find("# expect "); at != std::string::npos;
         at = line.find("# expect ", at + 1)) {
      const std::size_t colon = line.find(": ", at);
      const std::size_t end = line.find(" # expect ", at + 1);
      all.push_back({number, line.substr(at + 9, colon - at - 9),
                     line.substr(colon + 2, end == std::string::npos ? end : end - colon - 2)});
    }
  return all;
}

std::vector<fs::path> cases() {
  std::vector<fs::path> files;
  for (const auto& entry :
       fs::recursive_directory_iterator(fs::path(FUSELINE_SOURCE_DIR) / "tests/error/programs"))
    if (entry.path().extension() == ".fuse") files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  return files;
}

std::string shown(const Diagnosis& d) { return "[" + d.rule + "] " + format_problem(d.problem); }

TEST(RefusedPrograms, AreRefusedWhereTheirRemarksSay) {
  const Gpu gpu = load_gpu("h200");
  ASSERT_GE(cases().size(), 30U);
  for (const fs::path& path : cases()) {
    const ProgramFile file = read_program_file(path.string());
    std::vector<Diagnosis> found = check_programs(file);
    if (found.empty()) found = check_tiles(file, gpu);
    std::vector<Expected> wanted = expected_in(file.source->text);
    ASSERT_FALSE(wanted.empty()) << path;
    for (const Diagnosis& d : found) {
      const auto same = std::find_if(wanted.begin(), wanted.end(), [&](const Expected& e) {
        return e.line == d.problem.line && e.rule == d.rule &&
               format_problem(d.problem).find(e.words) != std::string::npos;
      });
      if (same == wanted.end())
        ADD_FAILURE() << path << ": not expected: " << shown(d);
      else
        wanted.erase(same);
    }
    for (const Expected& e : wanted)
      ADD_FAILURE() << path << ":" << e.line << ": not found: " << e.rule << ": " << e.words;
  }
}

TEST(RefusedPrograms, NameRulesThatHaveReasons) {
  std::set<std::string> shown_rules;
  for (const fs::path& path : cases())
    for (const Expected& e : expected_in(read_program_file(path.string()).source->text)) {
      shown_rules.insert(e.rule);
      EXPECT_NE(std::string(program_rule(e.rule).reason), "");
    }
  // Those of legality have a case each.
  for (const char* rule :
       {"no-finisher", "several-finishers", "pair-across-tiles", "unfinished-partial", "alias",
        "in-place", "two-layouts", "tile", "whole-row", "whole-column", "other-rows",
        "second-mainloop", "read-before-stored", "output-not-stored", "stored-twice", "on-chip",
        "stores-nothing", "kernel-name", "mainloop"})
    EXPECT_TRUE(shown_rules.contains(rule)) << rule;
}

}  // namespace
}  // namespace fuseline
