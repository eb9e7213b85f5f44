// Answers that are right or wrong on purpose, and folders to check them in.
#pragma once

#include <filesystem>
#include <map>
#include <string>

#include "lab/answers.h"
#include "lab/check.h"
#include "lab/lab.h"

namespace fuseline::lab::test {

// The right answer to a task as a student would write it.
std::string right_answer(const Task& task);
std::map<std::string, std::string> right_answers(const Lab& lab);

// Wrong in every number (its first known mistake) or in every choice (its first wrong option).
std::map<std::string, std::string> with_wrong_numbers(const Lab& lab);
std::map<std::string, std::string> with_wrong_choices(const Lab& lab);

// An empty folder of the running test, new on every call.
std::filesystem::path new_folder();

void write_file(const std::filesystem::path& path, const std::string& text);
std::string read_file(const std::filesystem::path& path);

// As `lab check`, without its result.json.
LabResult check(const std::filesystem::path& folder);

inline std::filesystem::path source_dir() { return FUSELINE_SOURCE_DIR; }

}  // namespace fuseline::lab::test
