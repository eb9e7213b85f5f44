#include "lab/course/course_folder.h"

#include <fcntl.h>
#include <sys/random.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <system_error>

#include <fmt/format.h>

#include "base/csv.h"
#include "base/error.h"
#include "base/lists.h"
#include "base/output_file.h"
#include "base/output_folder.h"
#include "base/path_kind.h"
#include "lab/lab.h"
#include "lab/workspace.h"

namespace fuseline::lab {

namespace fs = std::filesystem;

namespace {

constexpr std::size_t kSecretBytes = 24;  // 192 bits

[[noreturn]] void fail_secret(const char* what) {
  throw MissingError(fmt::format("{} for a course's secret: {}", what, std::strerror(errno)));
}

// In hexadecimal, from the system's random numbers.
std::string new_secret() {
  std::array<unsigned char, kSecretBytes> bytes{};
  for (std::size_t got = 0; got < bytes.size();) {
    const ssize_t n = getrandom(bytes.data() + got, bytes.size() - got, 0);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) fail_secret("no random numbers");
    got += static_cast<std::size_t>(n);
  }
  return fmt::format("{:02x}", fmt::join(bytes, ""));
}

// Nobody but the owner can open it at any moment.
void write_secret(const fs::path& file) {
  const std::string text = new_secret() + "\n";
  const int to = open(file.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (to < 0) fail_secret("no file");
  const bool written =
      ::write(to, text.data(), text.size()) == static_cast<ssize_t>(text.size()) && fsync(to) == 0;
  if (close(to) != 0 || !written) fail_secret("no room");
}

void make_folders_to(const fs::path& folder) {
  std::error_code failed;
  fs::create_directories(folder, failed);
  if (!failed) return;
  throw InputError({.file = folder.string(), .message = "cannot be made: " + failed.message()});
}

// Every student's folder for every lab that is not there yet.
void make_student_folders(CourseFolder& made, const ParallelOptions& options) {
  const Course& course = made.course;
  make_folders_to(course.submissions());
  std::atomic<std::size_t> there = 0, fresh = 0;
  const std::size_t labs = course.labs.size();
  parallel_for(
      course.students.size() * labs,
      [&](std::size_t i) {
        const std::string& id = course.students[i / labs];
        const int number = course.labs[i % labs].number;
        const fs::path folder = course.student_folder(id, number);
        if (kind_of_path(folder) != PathKind::missing) {
          ++there;
          return;
        }
        make_folders_to(folder.parent_path());
        const Student student(id, course.secret);
        make_workspace(make_lab(number, student), student, folder);
        ++fresh;
      },
      options);
  made.there = there;
  made.made = fresh;
}

void refuse_nobody(const std::vector<std::string>& students) {
  if (!students.empty()) return;
  throw InputError({.file = "command line",
                    .field = "--student",
                    .message = "a course needs a student",
                    .allowed = "ids separated by commas, or a table: --students FILE.csv"});
}

CourseFolder make_new_course(const CourseStart& what, const ParallelOptions& options) {
  refuse_nobody(what.students);
  OutputFolder fresh(what.folder);
  CourseFolder made;
  made.is_new = true;
  replace_file(fresh.path() / kCourseFile, course_text(what.settings));
  replace_file(fresh.path() / "students.csv", students_text(what.students));
  write_secret(fresh.path() / "secret.txt");
  made.course = load_course(fresh.path());
  make_student_folders(made, options);
  if (options.stop != nullptr && *options.stop) return made;
  fresh.take_place();
  made.course = load_course(what.folder);
  return made;
}

CourseFolder complete_course(const CourseStart& what, const ParallelOptions& options) {
  CourseFolder made;
  made.course = load_course(what.folder);
  std::vector<std::string> students = made.course.students;
  for (const std::string& id : what.students) {
    if (!holds(students, id)) students.push_back(id);
  }
  if (students.size() != made.course.students.size()) {
    const fs::path& file = made.course.students_file;
    if (CsvTable(file.string()).columns().size() > 1) {
      throw InputError({.file = file.string(),
                        .message = "has more columns than 'student', which would be lost",
                        .allowed = "write the new students into this file, then run init again"});
    }
    replace_file(file, students_text(students));
    made.course = load_course(what.folder);
  }
  make_student_folders(made, options);
  return made;
}

}  // namespace

CourseFolder make_course(const CourseStart& asked, const ParallelOptions& options) {
  CourseStart what = asked;
  what.students.clear();
  for (const std::string& id : asked.students) {
    require_course_id(id);
    if (!holds(what.students, id)) what.students.push_back(id);
  }
  const PathKind kind = kind_of_path(what.folder);
  if (kind == PathKind::missing) return make_new_course(what, options);
  if (kind != PathKind::folder) {
    throw InputError({.file = what.folder.string(),
                      .message = "is no folder",
                      .allowed = "a new folder, or one that holds a course"});
  }
  if (kind_of_path(what.folder / kCourseFile) != PathKind::missing) {
    return complete_course(what, options);
  }
  if (!folder_entries(what.folder).empty()) {
    throw InputError({.file = what.folder.string(),
                      .message = fmt::format("holds other things and no {}", kCourseFile),
                      .allowed = "a new folder, an empty one, or one that holds a course"});
  }
  return make_new_course(what, options);
}

}  // namespace fuseline::lab
