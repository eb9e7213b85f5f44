#include "lab/staff.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/data_files.h"
#include "base/error.h"
#include "base/output_file.h"
#include "lab/answers.h"
#include "lab/workspace.h"

namespace fuseline::lab {

namespace fs = std::filesystem;

namespace {

constexpr const char* kRight = "right";
constexpr const char* kFunctionEnding = ".cpp.in";
constexpr const char* kPlanEnding = ".toml";
constexpr const char* kProgramEnding = ".fuse.in";

// "stub.cpp", "plan.toml", or nothing: what the lab asks for beside answers.
std::string written_file(const Lab& lab) {
  for (const Task& task : lab.tasks) {
    if (std::string file = file_of(task); !file.empty()) return file;
  }
  return {};
}

std::string ending_of(const Lab& lab) {
  const std::string file = written_file(lab);
  if (file.empty()) return "";
  return file == "plan.toml"       ? kPlanEnding
         : file.ends_with(".fuse") ? kProgramEnding
                                   : kFunctionEnding;
}

// The names of the solutions in a folder.
std::vector<std::string> solution_names(const fs::path& folder, const std::string& ending) {
  std::vector<std::string> names;
  std::error_code failed;
  for (const auto& entry : fs::directory_iterator(folder, failed)) {
    const std::string name = entry.path().filename().string();
    if (name.ends_with(ending)) names.push_back(name.substr(0, name.size() - ending.size()));
  }
  std::ranges::sort(names);
  if (std::ranges::find(names, kRight) != names.end()) return names;
  throw InputError({.file = (folder / (kRight + ending)).string(),
                    .message = "there is no such solution",
                    .allowed = "a folder as tests/lab/staff/03"});
}

// The student's file with the solution in it.
std::string filled_in(const Lab& lab, const Student& student, const fs::path& solution) {
  std::string text = read_input_file(solution);
  if (written_file(lab) == "plan.toml") {
    const std::string plan = workspace_files(lab, student).at("plan.toml");
    return plan.substr(0, plan.find("[custom]\n")) + text;
  }
  // What the student is given of a file of programs stays in front.
  if (const std::string file = written_file(lab); file.ends_with(".fuse")) {
    text = workspace_files(lab, student).at(file) + text;
  }
  return with_factor(std::move(text), lab);
}

}  // namespace

std::string right_answer(const Task& task) {
  if (const auto* n = std::get_if<NumberKey>(&task.key)) {
    return quantity_text(n->value, n->dimension, n->unit, n->digits);
  }
  if (const auto* c = std::get_if<ChoiceKey>(&task.key)) {
    return std::ranges::find_if(c->options, [](const Option& o) { return o.diagnosis.empty(); })
        ->word;
  }
  return file_of(task);
}

std::map<std::string, std::string> right_answers(const Lab& lab) {
  std::map<std::string, std::string> answers;
  for (const Task& task : lab.tasks) answers[task.id] = right_answer(task);
  return answers;
}

std::map<std::string, std::string> with_wrong_numbers(const Lab& lab) {
  std::map<std::string, std::string> answers = right_answers(lab);
  for (const Task& task : lab.tasks) {
    const auto* n = std::get_if<NumberKey>(&task.key);
    if (n == nullptr) continue;
    answers[task.id] = quantity_text(n->mistakes.at(0).value, n->dimension, n->unit, n->digits);
  }
  return answers;
}

std::map<std::string, std::string> with_wrong_choices(const Lab& lab) {
  std::map<std::string, std::string> answers = right_answers(lab);
  for (const Task& task : lab.tasks) {
    const auto* c = std::get_if<ChoiceKey>(&task.key);
    if (c == nullptr) continue;
    answers[task.id] = std::ranges::find_if(c->options, [](const Option& o) {
                         return !o.diagnosis.empty();
                       })->word;
  }
  return answers;
}

std::vector<std::string> make_staff_folders(const Lab& lab, const Student& student,
                                            const fs::path& folder,
                                            const std::optional<fs::path>& solutions) {
  const std::string file = written_file(lab);
  const std::string ending = ending_of(lab);
  std::vector<std::string> names = {kRight, "wrong-choices", "wrong-numbers"};
  std::vector<std::string> given;
  if (solutions && !file.empty()) given = solution_names(*solutions, ending);
  for (const std::string& name : given) {
    if (name != kRight) names.push_back(name);
  }
  make_new_folder(folder);
  for (const std::string& name : names) {
    make_workspace(lab, student, folder / name);
    const auto answers = name == "wrong-numbers"   ? with_wrong_numbers(lab)
                         : name == "wrong-choices" ? with_wrong_choices(lab)
                                                   : right_answers(lab);
    replace_file(folder / name / "answers.toml", answers_text(lab, student, answers));
    if (given.empty()) continue;
    const bool own = std::ranges::find(given, name) != given.end();
    replace_file(folder / name / file,
                 filled_in(lab, student, *solutions / ((own ? name : kRight) + ending)));
  }
  std::ranges::sort(names);
  return names;
}

}  // namespace fuseline::lab
