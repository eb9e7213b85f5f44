// What students handed in: folders somewhere below one folder, as a learning platform unpacks them.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "lab/course/course.h"

namespace fuseline::lab {

struct Submission {
  std::filesystem::path folder;  // the one that holds answers.toml, or should
  std::string place;             // the same, from the folder that was searched
};

struct UnassignedSubmission {
  std::string place;
  std::string reason;
};

struct FoundSubmissions {
  // By student and lab. More than one folder may claim to be the same.
  std::map<std::pair<std::string, int>, std::vector<Submission>> by_row;
  std::vector<UnassignedSubmission> unassigned;
  std::vector<std::string> notes;  // links and folders that were not followed
};

// Searches `root` and all folders below; links are not followed. A folder counts when it holds an
// answers.toml, or is called as a lab's folder. Whose it is:
//   1. the student whose id a folder on the way names, as "ada" or "ada_123_assignsubmission_file":
//      what lies there is ada's, whatever its answers.toml says;
//   2. else the one whom its answers.toml names.
// InputError: no such folder, or the course's folder lies in it.
FoundSubmissions find_submissions(const Course& course, const std::filesystem::path& root);

}  // namespace fuseline::lab
