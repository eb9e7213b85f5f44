// answers.toml: who answers, which lab, and one text for each task.
#pragma once

#include <filesystem>
#include <map>
#include <string>

#include "lab/lab.h"

namespace fuseline::lab {

// Written where a task is not answered yet.
inline constexpr const char* kNoAnswer = "?";

struct Answer {
  std::string text;   // as written, trimmed; empty: not answered
  Quantity quantity;  // of a number task
};

struct Answers {
  std::string student;
  int lab = 0;
  std::map<std::string, Answer> by_task;
};

// The head of the file only: student and lab. InputError: no such file, syntax, wrong fields.
Answers read_answers_head(const std::filesystem::path& path);

// With every answer checked against its task. InputError (file, line, field): an unknown task, a
// task without a field, a number without its unit or with another, a word that is not offered.
Answers read_answers(const std::filesystem::path& path, const Lab& lab);

// The file of a student who has answered nothing yet, or `answers` by task.
std::string answers_text(const Lab& lab, const Student& student,
                         const std::map<std::string, std::string>& answers = {});

}  // namespace fuseline::lab
