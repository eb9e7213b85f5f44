// fuseline lab: exercises with checks.
#include <algorithm>
#include <filesystem>
#include <optional>
#include <sstream>
#include <string>

#include <fmt/format.h>

#include "base/error.h"
#include "base/output_file.h"
#include "base/path_kind.h"
#include "cli/commands.h"
#include "cli/options.h"
#include "cli/table.h"
#include "lab/folder_check.h"
#include "lab/report.h"
#include "lab/sandbox.h"
#include "lab/shown.h"
#include "lab/staff.h"
#include "lab/workspace.h"

namespace fuseline {

namespace {

namespace fs = std::filesystem;

const std::string kLabNumber = fmt::format("the lab's number, 0 to {}", lab::lab_count() - 1);
constexpr const char* kVerbs = "start, check, hint, report, staff, list";

int parse_lab(const std::string& text) {
  return static_cast<int>(parse_whole_number("LAB", text, 0, lab::lab_count() - 1));
}

[[noreturn]] void missing_argument(const std::string& name, const std::string& allowed) {
  throw InputError(
      {.file = kCommandLine, .field = name, .message = "is missing", .allowed = allowed});
}

int required_lab(const std::vector<std::string>& words) {
  if (words.empty()) missing_argument("LAB", kLabNumber);
  return parse_lab(words.front());
}

void add_secret_option(Options& options, std::optional<std::string>& file) {
  options.text("--secret", "FILE", "the course's secret (FUSELINE_LAB_SECRET, or self-study)",
               file);
}

// The id that is asked for, else that of the labs in the same folder, else a new one.
lab::Student student_of(const std::optional<std::string>& id, const fs::path& folder,
                        const lab::CourseSecret& secret) {
  if (id) return lab::Student(*id, secret);
  const fs::path around = folder.has_parent_path() ? folder.parent_path() : fs::path(".");
  const std::string known = lab::id_in(around, secret);
  return known.empty() ? lab::Student::unnamed(secret) : lab::Student(known, secret);
}

// With the secret's option where it is not the environment that names it.
std::string check_command(int number, const std::optional<std::string>& dir,
                          const std::optional<std::string>& secret) {
  return fmt::format("fuseline lab check {}{}{}", number, dir ? " --dir " + *dir : "",
                     secret ? " --secret " + *secret : "");
}

CommandResult start(const Arguments& args) {
  std::vector<std::string> words;
  std::optional<std::string> student_id, dir, secret_file;
  Options options("lab start", "Makes a folder with a lab's task sheet and files to fill in.",
                  {"fuseline lab start 1", "fuseline lab start 3 --student ada --dir my-lab"});
  options.positional("LAB", kLabNumber, words, 1);
  options.text("--student", "ID", "decides the shapes (as in the labs beside it, else a new one)",
               student_id);
  options.text("--dir", "DIR", "the folder to make (lab-NN)", dir);
  add_secret_option(options, secret_file);
  if (!options.parse(args)) return {options.help(), {}, ExitStatus::done};
  const int number = required_lab(words);
  const fs::path folder = dir.value_or(lab::default_folder(number));
  const lab::Student student =
      student_of(student_id, folder, lab::CourseSecret::chosen(secret_file));
  const lab::Lab made = lab::make_lab(number, student);
  lab::make_workspace(made, student, folder);

  std::string text = fmt::format("lab {}: {} ({} tasks, {} points, student {})\n\n", number,
                                 made.title, made.tasks.size(), lab::points_of(made), student.id());
  text += fmt::format("read     docs/labs/{}/README.md\n", made.folder);
  text += fmt::format("tasks    {}\n", (folder / "README.md").string());
  for (const auto& [name, unused] : lab::workspace_files(made, student)) {
    if (name == "README.md" || name.ends_with(".h")) continue;
    text += fmt::format("fill in  {}\n", (folder / name).string());
  }
  text += fmt::format("check    {}\n", check_command(number, dir, secret_file));
  return {text, {}, ExitStatus::done};
}

CommandResult staff(const Arguments& args) {
  std::vector<std::string> words;
  std::optional<std::string> student_id, dir, secret_file, solutions;
  Options options("lab staff",
                  "Makes a student's right answers, and wrong ones with known mistakes.",
                  {"fuseline lab staff 1 --student ada",
                   "fuseline lab staff 3 --student ada --solutions tests/lab/staff/03"});
  options.positional("LAB", kLabNumber, words, 1);
  options.text("--student", "ID", "whose answers", student_id);
  options.text("--dir", "DIR", "the folder to make (staff-NN)", dir);
  options.text("--solutions", "DIR", "functions or plans, which are not made from keys", solutions);
  add_secret_option(options, secret_file);
  if (!options.parse(args)) return {options.help(), {}, ExitStatus::done};
  const int number = required_lab(words);
  if (!student_id) missing_argument("--student", "a student's id");
  const lab::Student student(*student_id, lab::CourseSecret::chosen(secret_file));
  const fs::path folder = dir.value_or(fmt::format("staff-{:02}", number));
  std::optional<fs::path> from;
  if (solutions) from = *solutions;
  std::string text;
  for (const std::string& name :
       lab::make_staff_folders(lab::make_lab(number, student), student, folder, from)) {
    text += check_command(number, (folder / name).string(), secret_file) + "\n";
  }
  return {text, {}, ExitStatus::done};
}

std::string verdict_text(const lab::TaskResult& t) {
  switch (t.verdict) {
    case lab::Verdict::right:
      return t.diagnosis.empty() ? "right" : "right: " + t.diagnosis;
    case lab::Verdict::wrong:
      return "wrong: " + t.diagnosis;
    case lab::Verdict::unanswered:
      return t.diagnosis.empty() ? "not answered" : "not answered: " + t.diagnosis;
    case lab::Verdict::unjudged:
      return "not judged: " + t.diagnosis.substr(0, t.diagnosis.find('\n'));
  }
  FUSELINE_ASSERT(false, "verdict");
}

// Each task in a line or more: id, points, answer, verdict with diagnosis.
std::string result_text(const lab::LabResult& result) {
  std::size_t answer_width = 6;
  for (const lab::TaskResult& t : result.tasks) {
    answer_width = std::max(answer_width, display_width(t.answer));
  }
  answer_width = std::min<std::size_t>(answer_width, 20);
  const auto row = [&](const std::string& id, const std::string& points, std::string answer,
                       const std::string& verdict) {
    const std::string head = fmt::format("{:<6}{:<8}{:<{}}  ", id, points, answer, answer_width);
    const std::size_t indent = display_width(head);
    std::string text;
    for (const std::string& line : broken(verdict, kTableWidth - std::min(indent, std::size_t{60})))
      text += (text.empty() ? head : std::string(indent, ' ')) + line + "\n";
    return text;
  };
  std::string text =
      fmt::format("lab {}: {} (student {})\n\n", result.lab, result.title, result.student);
  text += row("task", "points", "answer", "verdict");
  const std::string* first_open = nullptr;
  for (const lab::TaskResult& t : result.tasks) {
    text += row(t.id, fmt::format("{}/{}", t.points, t.of), t.answer, verdict_text(t));
    if (t.verdict != lab::Verdict::right && first_open == nullptr) first_open = &t.id;
  }
  for (const lab::TaskResult& t : result.tasks) {
    if (t.printed.empty()) continue;
    text += fmt::format("\n{} printed:\n", t.answer);
    std::istringstream lines(t.printed);
    for (std::string line; std::getline(lines, line);) text += "  " + line + "\n";
  }
  text += fmt::format("\n{} of {} points", result.points(), result.of());
  text += first_open == nullptr ? "\n" : fmt::format("; next: fuseline lab hint {}\n", *first_open);
  return text;
}

// The errors that a check met, one a line, and what they make of the exit status.
CommandResult with_errors(std::string output, const std::vector<const lab::LabResult*>& results,
                          std::string messages) {
  bool passed = true, wrong_input = !messages.empty(), missing = false;
  for (const lab::LabResult* r : results) {
    passed = passed && r->passed();
    wrong_input = wrong_input || !r->errors.empty();
    missing = missing || !r->missing.empty();
    for (const std::string& e : r->errors) messages += "fuseline: error: " + e + "\n";
    for (const std::string& m : r->missing) messages += "fuseline: not available: " + m + "\n";
  }
  const ExitStatus status = wrong_input ? ExitStatus::wrong_input
                            : missing   ? ExitStatus::something_missing
                            : passed    ? ExitStatus::done
                                        : ExitStatus::check_failed;
  return {std::move(output), lab::shown(messages), status};
}

// A course's own secret says that the functions are other people's. A student's own needs no walls.
std::string without_walls(const lab::CourseSecret& secret, const lab::LabResult& result) {
  if (secret.is_self_study() || result.state != lab::FolderState::judged) return {};
  const lab::Lab asked = lab::make_lab(result.lab, lab::Student("nobody"));
  const bool ran = std::ranges::any_of(asked.tasks, [](const lab::Task& task) {
    return std::holds_alternative<lab::FunctionKey>(task.key);
  });
  const std::string note = ran ? lab::note_without_walls() : std::string();
  return note.empty() ? note : "fuseline: note: " + note + "\n";
}

// Writes the result; a message when that fails, so that the verdicts are shown all the same.
std::string written(const fs::path& file, const std::string& json) {
  try {
    replace_file(file, json);
    return {};
  } catch (const InputError& error) {
    return fmt::format("fuseline: error: {}\n", error.what());
  }
}

CommandResult check(const Arguments& args) {
  std::vector<std::string> words;
  std::optional<std::string> dir, result_path, student_id, secret_file;
  Options options("lab check", "Judges the answers of a lab; writes result.json into its folder.",
                  {"fuseline lab check 1", "fuseline lab check 3 --dir my-lab --student ada"});
  options.positional("LAB", kLabNumber, words, 1);
  options.text("--dir", "DIR", "the lab's folder (lab-NN)", dir);
  options.text("--student", "ID", "whose folder it has to be (the one that it says)", student_id);
  options.text("--result", "FILE", "the result for staff (result.json in that folder)",
               result_path);
  add_secret_option(options, secret_file);
  if (!options.parse(args)) return {options.help(), {}, ExitStatus::done};
  const int number = required_lab(words);
  const fs::path folder = dir.value_or(lab::default_folder(number));
  const lab::CourseSecret secret = lab::CourseSecret::chosen(secret_file);
  const lab::LabResult result =
      lab::check_folder({.folder = folder, .lab = number, .student = student_id, .secret = secret});
  const std::string failure = written(
      result_path ? fs::path(*result_path) : folder / lab::kResultFile, lab::result_json(result));
  CommandResult done = with_errors(result_text(result), {&result}, failure);
  done.messages += lab::shown(without_walls(secret, result));
  return done;
}

CommandResult hint(const Arguments& args) {
  std::vector<std::string> words;
  Options options("lab hint", "One hint for a task; the next one says more.",
                  {"fuseline lab hint 1.6", "fuseline lab hint 1.6 2"});
  options.positional("TASK", "the task, as in 1.6, and the hint's number (1)", words, 2);
  if (!options.parse(args)) return {options.help(), {}, ExitStatus::done};
  if (words.empty()) missing_argument("TASK", "a task, as in 1.6");
  const std::string& id = words.front();
  const lab::Lab made =
      lab::make_lab(parse_lab(id.substr(0, id.find('.'))), lab::Student("anybody"));
  const auto task = std::ranges::find(made.tasks, id, &lab::Task::id);
  if (task == made.tasks.end()) {
    std::vector<std::string> ids;
    for (const lab::Task& t : made.tasks) ids.push_back(t.id);
    throw InputError({.file = kCommandLine,
                      .field = "TASK",
                      .value = id,
                      .message = "there is no such task",
                      .allowed = fmt::format("{}", fmt::join(ids, ", "))});
  }
  const auto count = static_cast<std::int64_t>(task->hints.size());
  const std::int64_t level = words.size() < 2 ? 1 : parse_whole_number("HINT", words[1], 1, count);
  std::string text = wrap(fmt::format("hint {} of {} for task {}: {}", level, count, id,
                                      task->hints[static_cast<std::size_t>(level - 1)]));
  if (level < count) text += fmt::format("more: fuseline lab hint {} {}\n", id, level + 1);
  return {text, {}, ExitStatus::done};
}

CommandResult report(const Arguments& args) {
  std::optional<std::string> dir, result_path, student_id, secret_file;
  Options options("lab report", "Checks every lab that was started in a folder.",
                  {"fuseline lab report", "fuseline lab report --dir ~/labs"});
  options.text("--dir", "DIR", "the folder that holds the labs' folders (.)", dir);
  options.text("--student", "ID", "whose folders they have to be (those that they say)",
               student_id);
  options.text("--result", "FILE", "the result for staff (result.json in that folder)",
               result_path);
  add_secret_option(options, secret_file);
  if (!options.parse(args)) return {options.help(), {}, ExitStatus::done};
  const fs::path folder = dir.value_or(".");
  const lab::CourseSecret secret = lab::CourseSecret::chosen(secret_file);
  const std::vector<fs::path> found = lab::find_workspaces(folder);
  if (found.empty()) {
    throw InputError({.file = folder.string(),
                      .message = "holds no lab's folder",
                      .allowed = "one in which labs were started: fuseline lab start N"});
  }
  std::vector<lab::FolderResult> results;
  std::vector<std::vector<std::string>> rows;
  int points = 0, of = 0;
  for (const fs::path& workspace : found) {
    results.push_back(
        {lab::shown(workspace.filename().string()),
         lab::check_folder(
             {.folder = workspace, .lab = std::nullopt, .student = student_id, .secret = secret})});
    const lab::LabResult& result = results.back().result;
    std::vector<std::string> open;
    for (const lab::TaskResult& t : result.tasks) {
      if (t.verdict != lab::Verdict::right) open.push_back(t.id);
    }
    points += result.points();
    of += result.of();
    rows.push_back({results.back().folder, result.lab < 0 ? "?" : fmt::format("{}", result.lab),
                    result.student.empty() ? "?" : result.student,
                    fmt::format("{}/{}", result.points(), result.of()),
                    fmt::format("{}", fmt::join(open, " "))});
  }
  const std::vector<Column> columns = {{"folder", Align::left},
                                       {"lab", Align::right},
                                       {"student", Align::left},
                                       {"points", Align::right},
                                       {"open tasks", Align::left}};
  std::vector<const lab::LabResult*> judged;
  judged.reserve(results.size());
  for (const lab::FolderResult& r : results) judged.push_back(&r.result);
  const std::string failure = written(
      result_path ? fs::path(*result_path) : folder / lab::kResultFile, lab::report_json(results));
  return with_errors(format_table(columns, rows) + fmt::format("{} of {} points\n", points, of),
                     judged, failure);
}

CommandResult list() {
  std::vector<std::vector<std::string>> rows;
  rows.reserve(static_cast<std::size_t>(lab::lab_count()));
  for (int n = 0; n < lab::lab_count(); ++n) {
    rows.push_back({fmt::format("{}", n), lab::lab_title(n),
                    fmt::format("docs/labs/{}/README.md", lab::lab_folder(n))});
  }
  return {format_table({{"lab"}, {"about", Align::left}, {"reading", Align::left}}, rows),
          {},
          ExitStatus::done};
}

constexpr const char* kHelp =
    "Exercises on fusion, with checks: numbers with units, choices, C++ functions, fusion plans.\n"
    "usage: fuseline lab start N [--student ID] [--dir DIR]   makes lab-NN/ with the tasks\n"
    "       fuseline lab check N [--dir DIR] [--student ID] [--result FILE]\n"
    "                                                         judges the answers in it\n"
    "       fuseline lab hint N.K [HINT]                      a hint for a task\n"
    "       fuseline lab report [--dir DIR] [--student ID] [--result FILE]\n"
    "                                                         all labs started in a folder\n"
    "       fuseline lab staff N --student ID [--dir DIR] [--solutions DIR]\n"
    "                                                         right answers, and wrong ones\n"
    "       fuseline lab list                                 all labs and their readings\n"
    "A student's shapes and keys are made from the id and a secret: the text of the file that\n"
    "--secret FILE names, else the one that the variable FUSELINE_LAB_SECRET names, else one for\n"
    "self-study that everybody has. docs/labs/README.md says what a course's own secret protects.\n"
    "exit status: 0 all points, 1 some are missing, 2 an answer or a file cannot be read, a\n"
    "function does not compile, or a folder is not this student's, 3 there is no C++ compiler\n";

}  // namespace

CommandResult lab_command(const Arguments& args) {
  if (args.empty()) {
    throw InputError({.file = kCommandLine,
                      .field = "lab",
                      .message = "a word is missing",
                      .allowed = std::string(kVerbs) + ", each with --help"});
  }
  const std::string& verb = args.front();
  const Arguments rest(args.begin() + 1, args.end());
  if (verb == "--help" || verb == "-h") return {kHelp, {}, ExitStatus::done};
  if (verb == kDescribe) {
    Options options("lab", "Exercises on fusion, with checks.", {});
    options.words(split_list(kVerbs, ','), true);
    static_cast<void>(options.parse(args));
    return {options.help(), {}, ExitStatus::done};
  }
  if (verb == "start") return start(rest);
  if (verb == "check") return check(rest);
  if (verb == "hint") return hint(rest);
  if (verb == "report") return report(rest);
  if (verb == "staff") return staff(rest);
  if (verb == "list") return list();
  throw InputError(
      {.file = kCommandLine,
       .field = "lab",
       .value = verb,
       .message = "there is no such word",
       .allowed = kVerbs,
       .nearest = nearest_name(verb, {"start", "check", "hint", "report", "staff", "list"})});
}

}  // namespace fuseline
