// Answers that are right or wrong on purpose, and folders to check them in.
#pragma once

#include <filesystem>
#include <string>

#include "lab/answers.h"
#include "lab/check.h"
#include "lab/folder_check.h"
#include "lab/lab.h"
#include "lab/staff.h"

namespace fuseline::lab::test {

// The student whom most tests mean. Nothing of this id is stored anywhere.
inline Student somebody() { return Student("somebody"); }

using lab::right_answer;
using lab::right_answers;
using lab::with_wrong_choices;
using lab::with_wrong_numbers;

// An empty folder of the running test, new on every call.
std::filesystem::path new_folder();

void write_file(const std::filesystem::path& path, const std::string& text);
std::string read_file(const std::filesystem::path& path);

// With one blank for each line break and what is blank around it.
std::string one_line(const std::string& text);

// As `lab check`, without its result.json, for the self-study secret.
LabResult check(const std::filesystem::path& folder);

inline std::filesystem::path source_dir() { return FUSELINE_SOURCE_DIR; }

// Functions or plans that are right or wrong on purpose, and the diagnoses that they get.
std::filesystem::path solutions(int number);

// The right function of a lab for this student.
std::string right_function(int number, const Student& student);

}  // namespace fuseline::lab::test
