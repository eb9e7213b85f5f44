// Results for staff.
#pragma once

#include <string>
#include <vector>

#include "lab/check.h"

namespace fuseline::lab {

inline constexpr const char* kResultSchema = "fuseline.lab/1";
inline constexpr const char* kResultFile = "result.json";

// {"schema", "lab", "title", "student", "points", "of", "passed", "folder": name_of(state),
// "errors": [text], "tasks": [{"id", "points", "of", "verdict", "answer", "diagnosis"}]}; "trick":
// true in a task that reached for more than it was given. A row for every task, whatever was wrong.
// No key is in it.
std::string result_json(const LabResult& result);

inline constexpr const char* kReportSchema = "fuseline.lab-report/1";

struct FolderResult {
  std::string folder;  // its name
  LabResult result;
};

// {"schema", "points", "of", "labs": [{"folder", then as above}]}. A row for every folder.
std::string report_json(const std::vector<FolderResult>& results);

// The inverse of result_json(). InputError: another text.
LabResult result_of_json(const std::string& text, const std::string& file);

const char* name_of(Verdict);
const char* name_of(FolderState);

}  // namespace fuseline::lab
