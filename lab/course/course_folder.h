// Makes a course's folder, and what is missing in it.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "base/parallel_for.h"
#include "lab/course/course.h"

namespace fuseline::lab {

struct CourseStart {
  std::filesystem::path folder;
  NewCourse settings;                 // of a new course
  std::vector<std::string> students;  // to add
};

struct CourseFolder {
  Course course;
  bool is_new = false;
  std::size_t made = 0;   // students' folders
  std::size_t there = 0;  // that were there and stay as they are
};

// A new course with a secret of its own, or, where the folder holds a course, its students with
// those added and the folders that its course.toml asks for. A new course is there whole or not at
// all. Ids that are there already, or given twice, count once. InputError: the folder holds other
// things, a course without a student, an id that cannot name a folder. When `options.stop` was set,
// a new course is not there, and an old one has some of its folders; the same call goes on.
CourseFolder make_course(const CourseStart& what, const ParallelOptions& options = {});

}  // namespace fuseline::lab
