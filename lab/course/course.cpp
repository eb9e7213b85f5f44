#include "lab/course/course.h"

#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "base/csv.h"
#include "base/csv_text.h"
#include "base/error.h"
#include "base/lists.h"
#include "base/path_kind.h"
#include "base/toml_file.h"
#include "base/toml_text.h"
#include "lab/lab.h"
#include "lab/workspace.h"

namespace fuseline::lab {

namespace fs = std::filesystem;

namespace {

constexpr std::int64_t kFormat = 1;
constexpr const char* kCourseIds =
    "1 to 64 letters, digits, '.', '_', '-' and '@', the first one a letter or a digit";

bool is_course_id(const std::string& id) {
  const char first = id.empty() ? '.' : id.front();
  return (first >= '0' && first <= '9') || (first >= 'a' && first <= 'z') ||
         (first >= 'A' && first <= 'Z');
}

// Why a text is no id of a course; nothing when it is one.
std::optional<InputProblem> id_problem(const std::string& id) {
  try {
    static_cast<void>(Student(id));
  } catch (const InputError& error) {
    return error.problem();
  }
  if (is_course_id(id)) return std::nullopt;
  return InputProblem{.field = "--student", .value = id, .message = "would name no folder"};
}

Moment moment_of(const TomlTable& table, const std::string& key, std::chrono::minutes offset) {
  const auto moment = parse_moment(table.text(key), offset);
  if (!moment) table.fail(key, "is no day and time", kMomentSyntax);
  return *moment;
}

std::vector<CourseLab> read_labs(const TomlTable& top, std::chrono::minutes offset) {
  std::vector<CourseLab> labs;
  for (const TomlTable& table : top.tables("lab")) {
    table.refuse_other_keys({"number", "deadline"});
    CourseLab lab;
    lab.number = static_cast<int>(table.whole("number", {0, lab_count() - 1}));
    if (table.has("deadline")) lab.deadline = moment_of(table, "deadline", offset);
    if (std::ranges::find(labs, lab.number, &CourseLab::number) != labs.end()) {
      table.fail("number", "this lab is there already", "each lab once");
    }
    labs.push_back(lab);
  }
  std::ranges::sort(labs, {}, &CourseLab::number);
  return labs;
}

LateRules read_late(const TomlTable& top) {
  if (!top.has("late")) return {};
  const TomlTable table = top.table("late");
  table.refuse_other_keys({"percent_per_day", "days", "grace_minutes"});
  const LateRules usual;
  return {.percent_per_day = table.whole_or("percent_per_day", {0, 100}, usual.percent_per_day),
          .days = table.whole_or("days", {0, 366}, usual.days),
          .grace_minutes = table.whole_or("grace_minutes", {0, 10'080}, usual.grace_minutes)};
}

std::vector<Extension> read_extensions(const TomlTable& top, const Course& course) {
  std::vector<Extension> extensions;
  if (!top.has("extension")) return extensions;
  for (const TomlTable& table : top.tables("extension")) {
    table.refuse_other_keys({"student", "lab", "deadline"});
    Extension e;
    e.student = table.text("student");
    if (!holds(course.students, e.student)) {
      table.fail("student", "is not in the course", "an id of the course's list of students",
                 nearest_name(e.student, course.students));
    }
    e.lab = static_cast<int>(table.whole("lab", {0, lab_count() - 1}));
    if (std::ranges::find(course.labs, e.lab, &CourseLab::number) == course.labs.end()) {
      table.fail("lab", "the course does not have this lab", "a lab with a table [[lab]]");
    }
    e.deadline = moment_of(table, "deadline", course.utc_offset);
    extensions.push_back(std::move(e));
  }
  return extensions;
}

}  // namespace

fs::path Course::student_folder(const std::string& student, int lab) const {
  return folder / "students" / student / default_folder(lab);
}

std::optional<Moment> Course::deadline(const std::string& student, int lab) const {
  for (const Extension& e : extensions) {
    if (e.student == student && e.lab == lab) return e.deadline;
  }
  const auto found = std::ranges::find(labs, lab, &CourseLab::number);
  return found == labs.end() ? std::nullopt : found->deadline;
}

void require_course_id(const std::string& id) {
  auto problem = id_problem(id);
  if (!problem) return;
  problem->file = "command line";
  problem->allowed = kCourseIds;
  throw InputError(*problem);
}

std::vector<std::string> read_students(const fs::path& file) {
  const CsvTable table(file.string());
  std::vector<std::string> students;
  std::set<std::string> seen;
  for (std::size_t row = 0; row < table.rows(); ++row) {
    const std::string& id = table.text(row, "student");
    if (const auto problem = id_problem(id)) {
      table.fail(row, "student", problem->message, kCourseIds);
    }
    if (!seen.insert(id).second) {
      table.fail(row, "student", "is there already", "each student once");
    }
    students.push_back(id);
  }
  return students;
}

Course load_course(const fs::path& folder) {
  const fs::path file = folder / kCourseFile;
  if (kind_of_path(file) == PathKind::missing) {
    throw InputError({.file = folder.string(),
                      .message = fmt::format("holds no {}", kCourseFile),
                      .allowed = "a folder made by: fuseline course init FOLDER"});
  }
  const TomlTable top = TomlTable::load(file);
  top.refuse_other_keys(
      {"course", "name", "secret", "students", "utc_offset", "late", "lab", "extension"});
  static_cast<void>(top.whole("course", {kFormat, kFormat}));
  Course course;
  course.folder = folder;
  course.name = top.text("name");
  const auto offset = parse_utc_offset(top.text_or("utc_offset", "+00:00"));
  if (!offset) top.fail("utc_offset", "is no offset from UTC", "\"+01:00\", \"-05:30\" or \"Z\"");
  course.utc_offset = *offset;
  course.students_file = folder / top.text_or("students", "students.csv");
  course.students = read_students(course.students_file);
  course.labs = read_labs(top, course.utc_offset);
  course.late = read_late(top);
  course.extensions = read_extensions(top, course);
  course.secret = CourseSecret::from_file(folder / top.text_or("secret", "secret.txt"));
  return course;
}

std::string course_text(const NewCourse& what) {
  const LateRules late;
  std::string text = fmt::format(
      "# A course of fuseline's labs. After a change run: fuseline course init FOLDER\n"
      "# It makes the folders that are missing and leaves all others alone.\n"
      "course = {}  # the format of this file\n"
      "name = {}\n"
      "utc_offset = {}  # of times that say none\n\n"
      "[late]\n"
      "percent_per_day = {}  # of the points reached, for each day begun\n"
      "days = {}  # what comes later than that is worth nothing\n"
      "grace_minutes = {}  # after the deadline, and still in time\n",
      kFormat, toml_text(what.name), toml_text(what.utc_offset), late.percent_per_day, late.days,
      late.grace_minutes);
  const std::chrono::minutes offset =
      parse_utc_offset(what.utc_offset).value_or(std::chrono::minutes{0});
  for (const CourseLab& lab : what.labs) {
    text += fmt::format("\n[[lab]]\nnumber = {}  # {}\n", lab.number, lab_title(lab.number));
    text += lab.deadline
                ? fmt::format("deadline = {}\n", toml_text(moment_text(*lab.deadline, offset)))
                : "# deadline = \"2026-11-02 23:59\"\n";
  }
  text +=
      "\n# Another deadline for one student:\n"
      "# [[extension]]\n# student = \"ada\"\n# lab = 1\n# deadline = \"2026-11-09 23:59\"\n";
  return text;
}

std::string students_text(const std::vector<std::string>& students) {
  std::string text = "student\n";
  for (const std::string& id : students) text += csv_cell(id) + "\n";
  return text;
}

}  // namespace fuseline::lab
