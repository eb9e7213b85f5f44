// Mistakes that are put into shipped programs and into printed plans are found: by the rule that
// they break, in the line that was changed. Ten of them are shown in docs/reference.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <map>
#include <set>
#include <sstream>

#include "base/error.h"
#include "model/config/model_files.h"
#include "model/policy.h"
#include "model/programs/legality.h"
#include "model/programs/program_file.h"
#include "model/programs/rules.h"
#include "sim/gpu/gpu.h"
#include "sim/programs/tile_check.h"
#include "tests/error/program_mistakes.h"

namespace fuseline {
namespace {

namespace fs = std::filesystem;

std::string text_of(const fs::path& path) {
  std::ifstream in(path);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

// What is shipped, and what `explain --format program` prints of models.
std::vector<std::pair<std::string, std::string>> right_texts() {
  std::vector<std::pair<std::string, std::string>> all;
  for (const auto& entry :
       fs::directory_iterator(fs::path(FUSELINE_SOURCE_DIR) / "scenarios/programs"))
    if (entry.path().extension() == ".fuse")
      all.emplace_back(entry.path().filename().string(), text_of(entry.path()));
  std::sort(all.begin(), all.end());
  const auto plan = [&](const std::string& model, const std::string& policy, Phase phase) {
    Workload w{.phase = phase};
    w.seq = 256;
    all.emplace_back(fmt::format("plan of {}, {}, {}", model, policy, name_of(phase)),
                     plan_text(make_plan(policy, load_model(model), w, Target{}), "h200"));
  };
  plan("llama2-7b", "coda", Phase::forward);
  plan("gpt2-xl", "coda", Phase::forward);
  plan("llama2-7b", "coda", Phase::train);
  plan("mistral-7b", "tensorrt-llm", Phase::forward);
  plan("gpt2-xl", "xla", Phase::forward);
  return all;
}

const std::vector<test::Mistake>& mistakes() {
  static const std::vector<test::Mistake> all = [] {
    std::vector<test::Mistake> made;
    for (const auto& [base, text] : right_texts())
      for (test::Mistake& m : test::mistakes_in(base, text, 2)) made.push_back(std::move(m));
    return made;
  }();
  return all;
}

std::vector<Diagnosis> diagnoses_of(const std::string& text, const std::string& name) {
  static const Gpu gpu = load_gpu("h200");
  const ProgramFile file = read_program_text(text, name);
  std::vector<Diagnosis> found = check_programs(file);
  if (found.empty()) found = check_tiles(file, gpu);
  return found;
}

bool named(const test::Mistake& m, const Diagnosis& d) {
  return m.rules.contains(d.rule) && m.lines.contains(d.problem.line);
}

std::string line_of(const std::string& text, int line) {
  std::istringstream in(text);
  std::string out;
  for (int i = 0; i < line; ++i) std::getline(in, out);
  return out;
}

TEST(MistakenPrograms, AreMadeFromRightOnes) {
  for (const auto& [base, text] : right_texts()) {
    const std::vector<Diagnosis> found = diagnoses_of(text, base);
    EXPECT_TRUE(found.empty()) << base << ": " << format_problem(found.front().problem);
  }
}

TEST(MistakenPrograms, AreRefusedByTheRightRuleInTheRightLine) {
  int of_rules = 0, first = 0, mended = 0;
  std::set<std::string> rules;
  for (const test::Mistake& m : mistakes()) {
    const std::vector<Diagnosis> found = diagnoses_of(m.text, m.base);
    const auto right =
        std::find_if(found.begin(), found.end(), [&](const Diagnosis& d) { return named(m, d); });
    if (right == found.end()) {
      ADD_FAILURE() << m.base << ": " << m.what << ": line " << *m.lines.begin() << ", "
                    << *m.rules.begin() << ": " << line_of(m.text, *m.lines.begin()) << "\nfound: "
                    << (found.empty() ? "nothing"
                                      : "[" + found.front().rule + "] " +
                                            format_problem(found.front().problem));
      continue;
    }
    of_rules += m.typing ? 0 : 1;
    first += right == found.begin() ? 1 : 0;
    mended += right->mend.empty() ? 0 : 1;
    rules.insert(right->rule);
  }
  const int all = static_cast<int>(mistakes().size());
  RecordProperty("mistakes", all);
  RecordProperty("of the rules of legality", of_rules);
  RecordProperty("first diagnosis", first);
  RecordProperty("with a mend", mended);
  EXPECT_GE(all, 200);
  EXPECT_GE(of_rules, 100);
  // What follows from a mistake may stand above it, but seldom does.
  EXPECT_GE(first, all * 9 / 10);
  for (const char* rule :
       {"no-finisher", "several-finishers", "unfinished-partial", "alias", "in-place",
        "two-layouts", "stored-twice", "stores-nothing", "pair-across-tiles", "whole-row",
        "whole-column", "second-mainloop", "mainloop", "read-before-stored", "output-not-stored",
        "on-chip", "kernel-name", "operators", "tile"})
    EXPECT_TRUE(rules.contains(rule)) << rule;
}

TEST(HandbookOfPrograms, ListsEveryRuleWithItsReason) {
  const std::string page =
      text_of(fs::path(FUSELINE_SOURCE_DIR) / "docs/handbook/10-write-an-epilogue.md");
  std::size_t at = page.find("| rule | reason |");
  ASSERT_NE(at, std::string::npos);
  std::string table = "| rule | reason |\n|---|---|\n";
  for (const ProgramRule& rule : program_rules())
    table += fmt::format("| `{}` | {} |\n", rule.name, rule.reason);
  EXPECT_EQ(page.substr(at, table.size() + 1), table + "\n");
}

TEST(GeneratedReferenceOfMistakes, IsWhatTheProgramSays) {
  std::string page =
      "# Ten mistakes, and what is said of them\n\nMade from the code by `FUSELINE_UPDATE_DOCS=1 "
      "ctest -R GeneratedReferenceOfMistakes`; a test compares it.\n\nA test puts mistakes into "
      "the "
      "shipped programs and into printed plans of models, one at a time, and asks that each is\n"
      "refused by the right rule in the right line. ";
  const auto typing =
      std::ranges::count_if(mistakes(), [](const test::Mistake& m) { return m.typing; });
  page += fmt::format(
      "They are {}: {} break a rule of legality, and {} are typing errors.\nThese are the first "
      "ones "
      "of ten rules. `FUSELINE_SHOW_MISTAKES=1 build/release/tests/error_tests\n"
      "--gtest_filter='*OfMistakes*'` makes the mistakes again and prints this page.\n",
      mistakes().size(), std::ssize(mistakes()) - typing, typing);
  std::set<std::string> shown;
  for (const test::Mistake& m : mistakes()) {
    if (shown.size() == 10) break;
    const std::vector<Diagnosis> found = diagnoses_of(m.text, m.base);
    const auto right =
        std::find_if(found.begin(), found.end(), [&](const Diagnosis& d) { return named(m, d); });
    if (m.typing || right == found.end() || !shown.insert(right->rule).second) continue;
    page += fmt::format("\n## {}. {}\n\nIn {}:\n\n```text\n[{}] {}\n```\n", shown.size(), m.what,
                        m.base, right->rule, format_problem(right->problem));
    if (!right->mend.empty()) page += "\nTo write instead:\n\n```text\n" + right->mend + "\n```\n";
  }
  if (std::getenv("FUSELINE_SHOW_MISTAKES") != nullptr) std::cout << page;
  const fs::path path = fs::path(FUSELINE_SOURCE_DIR) / "docs/reference/program-mistakes.md";
  if (std::getenv("FUSELINE_UPDATE_DOCS") != nullptr) std::ofstream(path) << page;
  EXPECT_EQ(text_of(path), page);
}

}  // namespace
}  // namespace fuseline
