#include "tests/lab/lab_support.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <sstream>

namespace fuseline::lab::test {

namespace fs = std::filesystem;

std::string right_answer(const Task& task) {
  if (const auto* n = std::get_if<NumberKey>(&task.key)) {
    return quantity_text(n->value, n->dimension, n->unit, n->digits);
  }
  if (const auto* c = std::get_if<ChoiceKey>(&task.key)) {
    return std::ranges::find_if(c->options, [](const Option& o) { return o.diagnosis.empty(); })
        ->word;
  }
  return std::holds_alternative<PlanKey>(task.key) ? "plan.toml" : "stub.cpp";
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

fs::path new_folder() {
  static int count = 0;
  fs::path folder = fs::path(testing::TempDir()) /
                    ("lab_" + std::to_string(getpid()) + "_" + std::to_string(count++));
  fs::remove_all(folder);
  fs::create_directories(folder);
  return folder;
}

void write_file(const fs::path& path, const std::string& text) {
  std::ofstream(path, std::ios::binary) << text;
}

std::string read_file(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

LabResult check(const fs::path& folder) {
  const fs::path file = folder / "answers.toml";
  const Answers head = read_answers_head(file);
  const Lab lab = make_lab(head.lab, Student(head.student));
  return check_lab(lab, read_answers(file, lab), folder);
}

}  // namespace fuseline::lab::test
