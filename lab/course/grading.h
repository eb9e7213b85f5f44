// Grades a course: a row for each student and lab, whatever was handed in.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/parallel_for.h"
#include "lab/check.h"
#include "lab/course/course.h"
#include "lab/course/submissions.h"

namespace fuseline::lab {

// What is to be said of a row, the most important first.
//   missing     nothing was handed in
//   not_theirs  made for another student, lab or secret: no points
//   hostile     a link in place of a file, or a function that goes around the check
//   broken      its answers.toml cannot be read: no points
//   unjudged    something was not here, such as a compiler: grade again
//   several     more than one folder; the newest counts
//   too_late    by more days than the late rules allow: no points
//   graded
enum class RowStatus : std::uint8_t {
  missing,
  not_theirs,
  hostile,
  broken,
  unjudged,
  several,
  too_late,
  graded,
};
const char* name_of(RowStatus);  // "not theirs"

struct GradeRow {
  std::string student;
  int lab = 0;
  std::int64_t points = 0, of = 0;
  Lateness late;
  std::int64_t deduction = 0;  // hundredths of a point
  RowStatus status = RowStatus::missing;
  std::string note;  // one line
  std::optional<Moment> handed_in;
  std::string place;              // of the submission that counts
  std::string result;             // its file, from the course's folder of grades
  std::vector<TaskResult> tasks;  // of that submission; empty where nothing was judged

  // Hundredths of a point.
  [[nodiscard]] std::int64_t final_points() const { return points * 100 - deduction; }
};

struct GradingOptions {
  std::filesystem::path submissions;
  std::optional<std::filesystem::path> submitted;  // a table with times
  bool again = false;                              // judge what did not change too
  ParallelOptions parallel;                        // progress: submissions judged
};

struct Grading {
  std::vector<GradeRow> rows;  // by student in the course's order, then by lab
  std::vector<UnassignedSubmission> unassigned;
  std::vector<std::string> notes;    // of the search and of the table with times
  std::vector<std::string> missing;  // what was not here
  std::size_t judged = 0;            // submissions in this run
  std::size_t kept = 0;              // that did not change since an earlier run
  bool ran_functions = false;        // in this run
  bool stopped = false;              // by parallel.stop: `rows` is empty
};

// InputError: as find_submissions() and read_hand_in_times(); the folder of grades cannot be
// written.
Grading grade_course(const Course& course, const GradingOptions& options);

}  // namespace fuseline::lab
