// Results for staff.
#pragma once

#include <string>
#include <vector>

#include "lab/check.h"

namespace fuseline::lab {

inline constexpr const char* kResultSchema = "fuseline.lab/1";
inline constexpr const char* kResultFile = "result.json";

// {"schema", "lab", "title", "student", "points", "of", "passed", "tasks": [{"id", "points", "of",
// "verdict", "answer", "diagnosis"}]}. No key is in it.
std::string result_json(const LabResult& result);

const char* name_of(Verdict);

}  // namespace fuseline::lab
