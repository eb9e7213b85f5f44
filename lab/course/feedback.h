// What a grading says beyond points: to each student what was wrong, and to the lecturer which
// tasks went wrong for many.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>

#include "lab/course/grading.h"

namespace fuseline::lab {

// lab,task,right,wrong,unanswered,unjudged,most_frequent_diagnosis,times. A line for every task of
// the course; counted are the submissions that count and were judged.
std::string tasks_csv(const Course& course, const Grading& grading);

// A page in Markdown for one student: for each lab the points, what being late cost, and for each
// task the answer, the verdict and the diagnosis. No key is in it. What the student wrote can
// neither become markup nor leave its cell.
std::string feedback_page(const Course& course, const Grading& grading, const std::string& student);

struct WrittenFeedback {
  std::size_t pages = 0, changed = 0;
};
// Writes the pages to FOLDER/ID.md; those that are there already with the same text stay untouched.
// InputError: a file cannot be written.
WrittenFeedback write_feedback(const Course& course, const Grading& grading,
                               const std::filesystem::path& folder);

}  // namespace fuseline::lab
