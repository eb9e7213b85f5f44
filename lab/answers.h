// answers.toml: who answers, which lab, that the folder is this student's, and one text for each
// task.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>

#include "base/error.h"
#include "lab/lab.h"

namespace fuseline::lab {

// Written where a task is not answered yet.
inline constexpr const char* kNoAnswer = "?";

struct Answer {
  std::string text;   // as written, trimmed; empty: not answered
  Quantity quantity;  // of a number task
  // Why it cannot be read (file, line, field): no field, a number without its unit or with another,
  // a word that is not offered. The other answers are not touched by it.
  std::optional<InputProblem> problem;
};

struct Answers {
  std::string student;
  int lab = 0;
  std::string secret;  // the name of the secret that the folder was started with
  std::string tag;     // of CourseSecret::tag
  std::map<std::string, Answer> by_task;
};

// The head of the file only. InputError: no such file, syntax, wrong fields.
Answers read_answers_head(const std::filesystem::path& path);

// With every answer checked against its task. InputError: as above, another lab, an unknown task.
Answers read_answers(const std::filesystem::path& path, const Lab& lab);

// The file of a student who has answered nothing yet, or `answers` by task.
std::string answers_text(const Lab& lab, const Student& student,
                         const std::map<std::string, std::string>& answers = {});

// The file that holds the answer to a task that is no text; empty for the others.
std::string file_of(const Task& task);

}  // namespace fuseline::lab
