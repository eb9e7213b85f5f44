// Judges answers.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "lab/answers.h"
#include "lab/lab.h"

namespace fuseline::lab {

enum class Verdict : std::uint8_t { right, wrong, unanswered };

struct TaskResult {
  std::string id;
  int points = 0;
  int of = 0;
  Verdict verdict = Verdict::unanswered;
  std::string answer;     // as written
  std::string diagnosis;  // of a wrong one; of a right function, what was counted
  std::string printed;    // by a wrong function on a shape that is shown
};

struct LabResult {
  int lab = 0;
  std::string title;
  std::string student;
  std::vector<TaskResult> tasks;

  [[nodiscard]] int points() const;
  [[nodiscard]] int of() const;
  [[nodiscard]] bool passed() const { return points() == of(); }
};

// Every task; functions are compiled and run, plans read, in `folder`. InputError: a function that
// does not compile, a plan file that cannot be read. MissingError: no compiler.
LabResult check_lab(const Lab& lab, const Answers& answers, const std::filesystem::path& folder);

// Verdict and diagnosis of one number: right within the tolerance of its digits, else the nearest
// known mistake, else what can be said of the ratio (another prefix, MiB for MB, bits).
TaskResult judge_number(const NumberKey& key, const Quantity& quantity);

TaskResult judge_choice(const ChoiceKey& key, const std::string& word);

// Of plan.toml in the folder.
TaskResult judge_plan(const PlanKey& key, const std::filesystem::path& folder);

// Of the key's file in the folder: compiled, run on every case, results and counts compared.
TaskResult judge_function(const FunctionKey& key, const std::filesystem::path& folder);

}  // namespace fuseline::lab
