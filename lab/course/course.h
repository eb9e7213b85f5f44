// A course: its labs with deadlines, its late rules, its students and its secret, as they lie in
// one folder:
//   course.toml     what a lecturer edits
//   secret.txt      makes every key; readable by its owner alone
//   students.csv    one id a line
//   students/ID/    what each student gets
//   submissions/    what came back
//   grades/         the gradebook, and a result for each submission
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "lab/course/late_rules.h"
#include "lab/course/moment.h"
#include "lab/secret.h"

namespace fuseline::lab {

inline constexpr const char* kCourseFile = "course.toml";

struct CourseLab {
  int number = 0;
  std::optional<Moment> deadline;  // none: never late
};

// Another deadline of one student.
struct Extension {
  std::string student;
  int lab = 0;
  Moment deadline;
};

struct Course {
  std::filesystem::path folder;
  std::filesystem::path students_file;
  std::string name;
  std::chrono::minutes utc_offset{0};  // of times that say none, and of those that are shown
  std::vector<CourseLab> labs;         // by number
  LateRules late;
  std::vector<Extension> extensions;
  std::vector<std::string> students;  // in the order of the file
  CourseSecret secret = CourseSecret::self_study();

  [[nodiscard]] std::filesystem::path student_folder(const std::string& student, int lab) const;
  [[nodiscard]] std::filesystem::path submissions() const { return folder / "submissions"; }
  [[nodiscard]] std::filesystem::path grades() const { return folder / "grades"; }
  [[nodiscard]] std::optional<Moment> deadline(const std::string& student, int lab) const;
};

// InputError (file, line, field, value, what is allowed): no course in the folder, or a file of it
// that is wrong.
Course load_course(const std::filesystem::path& folder);

// The column `student` of a table. InputError (line): no student's id, or one that comes twice.
std::vector<std::string> read_students(const std::filesystem::path& file);

// A student's id names a folder here, so it begins with a letter or a digit. InputError (field
// --student).
void require_course_id(const std::string& id);

// The text of a new course.toml; `labs` with the same deadline, or none.
struct NewCourse {
  std::string name = "my course";
  std::vector<CourseLab> labs{};
  std::string utc_offset = "+00:00";
};
std::string course_text(const NewCourse& what);

std::string students_text(const std::vector<std::string>& students);

}  // namespace fuseline::lab
