// A student's folder for one lab: the task sheet, answers.toml, and what there is to write.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "lab/lab.h"

namespace fuseline::lab {

// "lab-03".
std::string default_folder(int number);

// Texts of the folder's files by name: README.md, answers.toml; stub.cpp and fuseline_lab.h where a
// function is asked for; plan.toml where a plan is; program.fuse where a program is.
std::map<std::string, std::string> workspace_files(const Lab& lab, const Student& student);

// A source of a lab with @FACTOR@ replaced by the student's factor.
std::string with_factor(std::string text, const Lab& lab);

// InputError when it exists or cannot be made.
void make_new_folder(const std::filesystem::path& folder);

// Writes them into a new folder. InputError when it exists or cannot be made; then nothing is left.
void make_workspace(const Lab& lab, const Student& student, const std::filesystem::path& folder);

// The task sheet in Markdown.
std::string task_sheet(const Lab& lab, const Student& student);

// The id that the labs started in `folder` with this secret have; empty without one.
std::string id_in(const std::filesystem::path& folder, const CourseSecret& secret);

// TrickError when something is there that is no file: a link could lead anywhere, a FIFO has no
// end.
void require_plain_file(const std::filesystem::path& path);

// Folders of labs in `folder`: those that hold an answers.toml, in alphabetical order.
std::vector<std::filesystem::path> find_workspaces(const std::filesystem::path& folder);

}  // namespace fuseline::lab
