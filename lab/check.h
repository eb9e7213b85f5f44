// Judges answers.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "lab/answers.h"
#include "lab/lab.h"
#include "model/programs/program_file.h"

namespace fuseline::lab {

// unjudged: an answer that cannot be read, a function that does not compile, no compiler, or a
// folder that is not this student's.
enum class Verdict : std::uint8_t { right, wrong, unanswered, unjudged };

struct TaskResult {
  std::string id;
  int points = 0;
  int of = 0;
  Verdict verdict = Verdict::unanswered;
  std::string answer;     // as written
  std::string diagnosis;  // of a wrong or unjudged one; of a right function, what was counted
  std::string printed;    // by a wrong function on a shape that is shown
  bool trick = false;     // it reached for more than it was given (lab/trick.h)
};

// What a folder turned out to be. foreign: made for another student, lab or secret. broken: its
// answers.toml cannot be read. hostile: it holds a link or a pipe in its place. Nothing of these
// three is judged.
enum class FolderState : std::uint8_t { judged, foreign, broken, hostile };

struct LabResult {
  int lab = 0;
  std::string title;
  std::string student;
  std::vector<TaskResult> tasks;
  std::vector<std::string> errors;   // of the input, each as a message with its place
  std::vector<std::string> missing;  // what was not here: a compiler
  FolderState state = FolderState::judged;

  [[nodiscard]] int points() const;
  [[nodiscard]] int of() const;
  [[nodiscard]] bool passed() const { return points() == of(); }
  // The first task in which something reached for more than it was given; none: nullptr.
  [[nodiscard]] const TaskResult* trick() const;
};

// Every task; functions are compiled and run, plans read, in `folder`. What one task cannot be
// judged for stands in errors or missing and leaves the others alone.
LabResult check_lab(const Lab& lab, const Answers& answers, const std::filesystem::path& folder);

// Verdict and diagnosis of one number: right within the tolerance of its digits, else the nearest
// known mistake, else what can be said of the ratio (another prefix, MiB for MB, bits).
TaskResult judge_number(const NumberKey& key, const Quantity& quantity);

TaskResult judge_choice(const ChoiceKey& key, const std::string& word);

// Of plan.toml in the folder. InputError: a file that cannot be read.
TaskResult judge_plan(const PlanKey& key, const std::filesystem::path& folder);

// Of the key's file in the folder: checked, executed on the CPU, its results held against fp64.
// InputError: the file is not there or too large.
TaskResult judge_program(const ProgramKey& key, const std::filesystem::path& folder);
// Of a file that was read already.
TaskResult judge_program(const ProgramKey& key, const ProgramFile& file);

// Of the key's file in the folder: compiled, run on every case, results and counts compared.
// InputError: it does not compile. MissingError: no compiler.
TaskResult judge_function(const FunctionKey& key, const std::filesystem::path& folder);

}  // namespace fuseline::lab
