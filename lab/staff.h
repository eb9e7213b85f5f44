// What staff have beside a student: answers that are right, and answers with known mistakes, made
// from the keys of this id and secret. None of it is stored.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "lab/lab.h"

namespace fuseline::lab {

// The right answer to a task as a student would write it.
std::string right_answer(const Task& task);
std::map<std::string, std::string> right_answers(const Lab& lab);

// Wrong in every number (its first known mistake) or in every choice (its first wrong option).
std::map<std::string, std::string> with_wrong_numbers(const Lab& lab);
std::map<std::string, std::string> with_wrong_choices(const Lab& lab);

// Makes `folder` with a student's folder each for "right", "wrong-numbers" and "wrong-choices".
// Functions, plans and programs are not made from keys: `solutions` holds them as NAME.cpp.in with
// @FACTOR@ for the student's factor, as NAME.fuse.in, what follows the head of the student's file,
// with @FACTOR@ too, or as NAME.toml, the table [custom] of a plan. "right" goes into these
// three; each other NAME becomes a folder with it and right answers. Without `solutions` they stay
// as lab start leaves them. Gives the folders' names. InputError as make_workspace, or for a folder
// of solutions without a right one.
std::vector<std::string> make_staff_folders(const Lab& lab, const Student& student,
                                            const std::filesystem::path& folder,
                                            const std::optional<std::filesystem::path>& solutions);

}  // namespace fuseline::lab
