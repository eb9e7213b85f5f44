// fuseline course: a lecturer's side of the labs.
#include <algorithm>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <system_error>

#include <fmt/format.h>

#include "base/error.h"
#include "base/output_file.h"
#include "cli/commands.h"
#include "cli/long_work.h"
#include "cli/options.h"
#include "cli/table.h"
#include "lab/course/course_folder.h"
#include "lab/course/feedback.h"
#include "lab/course/gradebook.h"
#include "lab/course/grading.h"
#include "lab/course/leaderboard.h"
#include "lab/lab.h"
#include "lab/sandbox.h"
#include "lab/shown.h"

namespace fuseline {

namespace {

namespace fs = std::filesystem;

constexpr const char* kCourseVerbs = "init, grade, leaderboard";
constexpr std::size_t kMostNotes = 20;  // of unassigned submissions, in messages

fs::path required_folder(const std::vector<std::string>& words) {
  if (!words.empty()) return words.front();
  throw InputError({.file = kCommandLine,
                    .field = "FOLDER",
                    .message = "is missing",
                    .allowed = "the course's folder"});
}

std::vector<std::string> split_at_commas(const std::string& text) {
  std::vector<std::string> words(1);
  for (const char c : text) {
    if (c == ',') {
      words.emplace_back();
    } else {
      words.back() += c;
    }
  }
  return words;
}

lab::NewCourse settings_of(const std::optional<std::string>& name,
                           const std::optional<std::string>& labs,
                           const std::optional<std::string>& deadline,
                           const std::optional<std::string>& apart,
                           const std::optional<std::string>& utc_offset) {
  lab::NewCourse settings;
  if (name) settings.name = *name;
  const auto refuse = [](const char* field, const std::string& value, const char* message,
                         const char* allowed) {
    throw InputError({.file = kCommandLine,
                      .field = field,
                      .value = value,
                      .message = message,
                      .allowed = allowed});
  };
  if (utc_offset) settings.utc_offset = *utc_offset;
  const auto offset = lab::parse_utc_offset(settings.utc_offset);
  if (!offset) {
    refuse("--utc-offset", settings.utc_offset, "is no offset from UTC", "+01:00, -05:30 or Z");
  }
  std::optional<lab::Moment> due;
  if (deadline) {
    due = lab::parse_moment(*deadline, *offset);
    if (!due) refuse("--deadline", *deadline, "is no day and time", lab::kMomentSyntax);
  }
  std::chrono::days between{0};
  if (apart) {
    if (!due) refuse("--days-apart", *apart, "needs a first deadline", "--deadline too");
    between = std::chrono::days{parse_whole_number("--days-apart", *apart, 0, 366)};
  }
  std::vector<std::string> numbers;
  if (labs && *labs != "all") {
    numbers = split_at_commas(*labs);
  } else {
    for (int n = 0; n < lab::lab_count(); ++n) numbers.push_back(std::to_string(n));
  }
  for (const std::string& number : numbers) {
    const int n = static_cast<int>(parse_whole_number("--labs", number, 0, lab::lab_count() - 1));
    if (std::ranges::find(settings.labs, n, &lab::CourseLab::number) != settings.labs.end()) {
      refuse("--labs", number, "is there already", "each lab once");
    }
    settings.labs.push_back({n, due});
    if (due) *due += between;
  }
  return settings;
}

CommandResult init(const Arguments& args) {
  std::vector<std::string> words;
  std::optional<std::string> name, students_file, students, labs, deadline, apart, utc_offset;
  Options options("course init",
                  "Makes a course's folder: its settings, a secret, and every student's labs.",
                  {"fuseline course init gpu-2026 --students enrolled.csv --labs 1,2,3",
                   "fuseline course init gpu-2026 --student latecomer"});
  options.positional("FOLDER", "a new folder, or a course's, to add what is missing", words, 1);
  options.text("--name", "TEXT", "the course's name (my course)", name);
  options.text("--students", "FILE.csv", "a table with a column `student`, the ids", students_file);
  options.text("--student", "IDS", "ids of students, separated by commas", students);
  options.text("--labs", "NUMBERS", "the labs, separated by commas (all)", labs);
  options.text("--deadline", "TIME", "of the first lab, as \"2026-11-02 23:59\" (none)", deadline);
  options.text("--days-apart", "DAYS", "from a lab's deadline to the next one's (0)", apart);
  options.text("--utc-offset", "OFFSET", "of times that say none, as +01:00 (+00:00)", utc_offset);
  if (!options.parse(args)) return {options.help(), {}, ExitStatus::done};
  lab::CourseStart what;
  what.folder = required_folder(words);
  what.settings = settings_of(name, labs, deadline, apart, utc_offset);
  if (students_file) what.students = lab::read_students(*students_file);
  if (students) {
    for (std::string& id : split_at_commas(*students)) what.students.push_back(std::move(id));
  }
  std::error_code failed;
  if (fs::exists(what.folder / lab::kCourseFile, failed)) {
    for (const auto& [option, value] :
         std::map<std::string, std::optional<std::string>>{{"--name", name},
                                                           {"--labs", labs},
                                                           {"--deadline", deadline},
                                                           {"--days-apart", apart},
                                                           {"--utc-offset", utc_offset}}) {
      if (!value) continue;
      throw InputError({.file = kCommandLine,
                        .field = option,
                        .value = *value,
                        .message = "is for a new course, and this one has its settings",
                        .allowed = "edit " + (what.folder / lab::kCourseFile).string()});
    }
  }
  const lab::CourseFolder made = run_long_work([&](const ShowProgress& show) {
    const std::atomic<bool>* stop = InterruptGuard::flag();
    lab::CourseFolder folder = lab::make_course(
        what, {.stop = stop, .progress = [&](std::size_t done, std::size_t count) {
                 show("students' folders", static_cast<double>(done) / static_cast<double>(count));
               }});
    if (*stop) throw executor::Cancelled("course init");
    return folder;
  });
  const std::size_t count = made.course.students.size();
  std::string text = fmt::format("course: {} ({} student{}, {} lab{})\n\n", made.course.name, count,
                                 count == 1 ? "" : "s", made.course.labs.size(),
                                 made.course.labs.size() == 1 ? "" : "s");
  const auto line = [&](const char* what_for, const std::string& path) {
    text += fmt::format("{:<9} {}\n", what_for, path);
  };
  line("settings", (what.folder / lab::kCourseFile).string());
  line("secret", (what.folder / "secret.txt").string() + "  keep it: it makes every key");
  line("hand out",
       (what.folder / "students").string() +
           fmt::format("  {} folder{} made{}", made.made, made.made == 1 ? "" : "s",
                       made.there > 0 ? fmt::format(", {} were there", made.there) : ""));
  line("collect", made.course.submissions().string());
  line("grade", "fuseline course grade " + what.folder.string());
  return {lab::shown(text), {}, ExitStatus::done};
}

// A line a lab: how many rows have each status that occurs.
std::string summary_table(const lab::Course& course, const lab::Grading& grading) {
  using lab::RowStatus;
  std::vector<RowStatus> statuses = {RowStatus::graded,   RowStatus::too_late,   RowStatus::several,
                                     RowStatus::broken,   RowStatus::not_theirs, RowStatus::hostile,
                                     RowStatus::unjudged, RowStatus::missing};
  std::vector<Column> columns = {
      {"lab", Align::left}, {"deadline", Align::left}, {"rows", Align::right}};
  std::erase_if(statuses, [&](RowStatus s) {
    return s != RowStatus::graded &&
           std::ranges::find(grading.rows, s, &lab::GradeRow::status) == grading.rows.end();
  });
  for (const RowStatus s : statuses) columns.push_back({lab::name_of(s), Align::right});
  columns.push_back({"late", Align::right});
  columns.push_back({"mean", Align::right});
  std::vector<std::vector<std::string>> rows;
  for (const lab::CourseLab& entry : course.labs) {
    std::map<RowStatus, int> count;
    int all = 0, late = 0;
    std::int64_t points = 0, of = 0;
    for (const lab::GradeRow& row : grading.rows) {
      if (row.lab != entry.number) continue;
      ++all;
      ++count[row.status];
      if (row.late.days > 0) ++late;
      points += row.final_points();
      of = row.of;
    }
    std::vector<std::string> cells = {
        std::to_string(entry.number),
        entry.deadline ? lab::moment_text(*entry.deadline, course.utc_offset) : "none",
        std::to_string(all)};
    for (const RowStatus s : statuses)
      cells.push_back(count[s] == 0 ? "" : std::to_string(count[s]));
    cells.push_back(late == 0 ? "" : std::to_string(late));
    cells.push_back(
        fmt::format("{:.1f}/{}", static_cast<double>(points) / 100 / std::max(all, 1), of));
    rows.push_back(std::move(cells));
  }
  return format_table(columns, rows);
}

std::string grading_messages(const lab::Course& course, const lab::Grading& grading) {
  std::string text;
  const auto note = [&](const std::string& what) { text += "fuseline: note: " + what + "\n"; };
  std::error_code failed;
  const fs::perms mode = fs::status(course.secret.file(), failed).permissions();
  if ((mode & (fs::perms::group_read | fs::perms::others_read)) != fs::perms::none) {
    note(course.secret.file().string() + " can be read by others: chmod 600");
  }
  for (const std::string& n : grading.notes) note(n);
  if (grading.ran_functions) {
    if (const std::string without = lab::note_without_walls(); !without.empty()) note(without);
  }
  for (std::size_t i = 0; i < grading.unassigned.size(); ++i) {
    if (i == kMostNotes) {
      note(fmt::format("{} more submissions are nobody's: see gradebook.json",
                       grading.unassigned.size() - i));
      break;
    }
    note(fmt::format("{}: {}", grading.unassigned[i].place, grading.unassigned[i].reason));
  }
  for (const std::string& m : grading.missing) text += "fuseline: not available: " + m + "\n";
  return lab::shown(text);
}

CommandResult grade(const Arguments& args) {
  std::vector<std::string> words;
  std::optional<std::string> submissions, submitted;
  bool again = false;
  Options options(
      "course grade", "Grades everything that was handed in: a row for each student and lab.",
      {"fuseline course grade gpu-2026",
       "fuseline course grade gpu-2026 --submissions ~/unpacked --submitted times.csv"});
  options.positional("FOLDER", "the course's folder", words, 1);
  options.text("--submissions", "DIR", "where to search (FOLDER/submissions)", submissions);
  options.text("--submitted", "FILE.csv", "columns student, lab, time (the files' newest change)",
               submitted);
  options.flag("--again", "judge what did not change too", again);
  if (!options.parse(args)) return {options.help(), {}, ExitStatus::done};
  const lab::Course course = lab::load_course(required_folder(words));
  lab::GradingOptions what;
  what.submissions = submissions ? fs::path(*submissions) : course.submissions();
  if (submitted) what.submitted = *submitted;
  what.again = again;
  const lab::Grading grading = run_long_work([&](const ShowProgress& show) {
    what.parallel.stop = InterruptGuard::flag();
    what.parallel.progress = [&](std::size_t done, std::size_t count) {
      show(fmt::format("{} of {} submissions", done, count),
           static_cast<double>(done) / static_cast<double>(count));
    };
    lab::Grading result = lab::grade_course(course, what);
    if (result.stopped) throw executor::Cancelled("course grade");
    return result;
  });
  const fs::path csv = course.grades() / "gradebook.csv", json = course.grades() / "gradebook.json";
  replace_file(csv, lab::gradebook_csv(grading));
  replace_file(json, lab::gradebook_json(course, grading));
  const fs::path tasks = course.grades() / "tasks.csv", pages = course.grades() / "feedback";
  replace_file(tasks, lab::tasks_csv(course, grading));
  lab::write_feedback(course, grading, pages);
  std::string text =
      fmt::format("course: {} ({} students)\n\n", course.name, course.students.size()) +
      summary_table(course, grading) +
      fmt::format("\njudged now {}, unchanged {}", grading.judged, grading.kept);
  if (!grading.unassigned.empty()) {
    text += fmt::format(", nobody's {}", grading.unassigned.size());
  }
  text += fmt::format("\ngradebook  {}\n           {}\n", csv.string(), json.string());
  text += fmt::format("tasks      {}  what went wrong how often\n", tasks.string());
  text += fmt::format("feedback   {}  a page for each student\n", pages.string());
  const bool missing = !grading.missing.empty();
  const bool bug = std::ranges::any_of(grading.rows, [&](const lab::GradeRow& row) {
    return row.status == lab::RowStatus::unjudged && !missing;
  });
  return {lab::shown(text), grading_messages(course, grading),
          bug       ? ExitStatus::our_bug
          : missing ? ExitStatus::something_missing
                    : ExitStatus::done};
}

CommandResult leaderboard(const Arguments& args) {
  std::vector<std::string> words;
  std::optional<std::string> submissions;
  Options options("course leaderboard",
                  "Ranks what students measured of the race on their GPUs (docs/labs/README.md).",
                  {"fuseline course leaderboard gpu-2026",
                   "fuseline course leaderboard gpu-2026 --submissions ~/unpacked"});
  options.positional("FOLDER", "the course's folder", words, 1);
  options.text("--submissions", "DIR", "where to search (FOLDER/submissions)", submissions);
  if (!options.parse(args)) return {options.help(), {}, ExitStatus::done};
  const lab::Course course = lab::load_course(required_folder(words));
  const lab::Leaderboard board =
      lab::read_leaderboard(course, submissions ? fs::path(*submissions) : course.submissions());
  const fs::path csv = course.grades() / "leaderboard.csv";
  std::error_code failed;
  fs::create_directories(course.grades(), failed);  // where it cannot, the file says so
  replace_file(csv, lab::leaderboard_csv(board));
  std::vector<std::vector<std::string>> rows;
  std::string messages;
  for (const lab::RaceEntry& e : board.entries) {
    if (!e.refused.empty()) {
      messages += fmt::format("fuseline: note: {}: does not count: {}\n", e.place, e.refused);
      continue;
    }
    rows.push_back({std::to_string(rows.size() + 1), e.student,
                    fmt::format("{:.1f} %", 100 * e.share()),
                    fmt::format("{:.1f}", e.time.value() * 1e6),
                    fmt::format("{:.1f}", e.least.value() * 1e6), e.device});
  }
  for (const std::string& note : board.notes) messages += "fuseline: note: " + note + "\n";
  std::string text = fmt::format("course: {} (the race)\n\n", course.name);
  text += rows.empty() ? "no entry counts yet\n"
                       : format_table({{"rank"},
                                       {"student", Align::left},
                                       {"of the limit"},
                                       {"time µs"},
                                       {"least µs"},
                                       {"GPU", Align::left}},
                                      rows);
  text += fmt::format("\nleaderboard  {}\n", csv.string());
  return {lab::shown(text), lab::shown(messages), ExitStatus::done};
}

constexpr const char* kCourseHelp =
    "A lecturer's side of the labs: a course with a secret, students, deadlines and grades.\n"
    "usage: fuseline course init FOLDER [--students FILE.csv] [--student IDS] [--labs NUMBERS]\n"
    "                                   [--deadline TIME] [--days-apart DAYS] ...\n"
    "                       makes the course, or what is missing in it\n"
    "       fuseline course grade FOLDER [--submissions DIR] [--submitted FILE.csv] [--again]\n"
    "                       a gradebook with a row for each student and lab\n"
    "       fuseline course leaderboard FOLDER [--submissions DIR]\n"
    "                       who is fastest in the race, by what students measured on GPUs\n"
    "docs/labs/README.md has an example.\n"
    "exit status: 0 done, whatever the students' answers are worth; 2 a file of the course cannot\n"
    "be read; 3 something was not here, such as a C++ compiler, and some rows are not judged\n";

}  // namespace

CommandResult course_command(const Arguments& args) {
  if (args.empty()) {
    throw InputError({.file = kCommandLine,
                      .field = "course",
                      .message = "a word is missing",
                      .allowed = std::string(kCourseVerbs) + ", each with --help"});
  }
  const std::string& verb = args.front();
  const Arguments rest(args.begin() + 1, args.end());
  if (verb == "--help" || verb == "-h") return {kCourseHelp, {}, ExitStatus::done};
  if (verb == kDescribe) {
    Options options("course", "A course of labs: its folders, and the grading of what comes back.",
                    {});
    options.words(split_list(kCourseVerbs, ','), true);
    static_cast<void>(options.parse(args));
    return {options.help(), {}, ExitStatus::done};
  }
  if (verb == "init") return init(rest);
  if (verb == "grade") return grade(rest);
  if (verb == "leaderboard") return leaderboard(rest);
  throw InputError({.file = kCommandLine,
                    .field = "course",
                    .value = verb,
                    .message = "there is no such word",
                    .allowed = kCourseVerbs,
                    .nearest = nearest_name(verb, split_list(kCourseVerbs, ','))});
}

}  // namespace fuseline
