// Results for staff.
#pragma once

#include <string>
#include <vector>

#include "lab/check.h"

namespace fuseline::lab {

inline constexpr const char* kResultSchema = "fuseline.lab/1";
inline constexpr const char* kResultFile = "result.json";

// {"schema", "lab", "title", "student", "points", "of", "passed", "errors": [text], "tasks":
// [{"id", "points", "of", "verdict", "answer", "diagnosis"}]}. A row for every task, whatever was
// wrong. No key is in it.
std::string result_json(const LabResult& result);

inline constexpr const char* kReportSchema = "fuseline.lab-report/1";

struct FolderResult {
  std::string folder;  // its name
  LabResult result;
};

// {"schema", "points", "of", "labs": [{"folder", then as above}]}. A row for every folder.
std::string report_json(const std::vector<FolderResult>& results);

const char* name_of(Verdict);

}  // namespace fuseline::lab
