// A course's grades as tables for other programs.
#pragma once

#include <string>

#include "lab/course/grading.h"

namespace fuseline::lab {

// "7", "7.5", "6.25": hundredths of a point as a number.
std::string points_text(std::int64_t hundredths);

// student,lab,points,of,late_days,deduction,final,status,note. A line for every student and lab.
std::string gradebook_csv(const Grading& grading);

inline constexpr const char* kGradebookSchema = "fuseline.gradebook/1";

// {"schema", "course", "rows": [{as the columns, "handed_in", "place", "result"}], "unassigned":
// [{"place", "reason"}]}.
std::string gradebook_json(const Course& course, const Grading& grading);

}  // namespace fuseline::lab
