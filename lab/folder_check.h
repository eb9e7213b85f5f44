// Judges a student's folder: first whose it is, then its answers.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "lab/check.h"
#include "lab/secret.h"

namespace fuseline::lab {

struct FolderCheck {
  std::filesystem::path folder;
  std::optional<int> lab;              // none: the one that the folder says
  std::optional<std::string> student;  // none: the one that the folder says
  CourseSecret secret = CourseSecret::self_study();
};

// A row for every task, also when nothing of the folder can be judged: a folder whose tag is not
// the one of its id and this secret, another lab's or another student's, or without a readable
// answers.toml gets no points, and errors says why. InputError: there is no such folder, or the
// secret lies in it.
LabResult check_folder(const FolderCheck& what);

}  // namespace fuseline::lab
