// fuseline lab: exercises with checks.
#include <algorithm>
#include <filesystem>
#include <optional>
#include <sstream>
#include <string>

#include <fmt/format.h>

#include "cli/commands.h"
#include "cli/options.h"
#include "cli/table.h"
#include "lab/answers.h"
#include "lab/check.h"
#include "lab/report.h"
#include "lab/workspace.h"
#include "model/error.h"
#include "model/output_file.h"
#include "model/path_kind.h"

namespace fuseline {

namespace {

namespace fs = std::filesystem;

constexpr const char* kVerbs = "start, check, hint, report, list";

int parse_lab(const std::string& text) {
  return static_cast<int>(parse_whole_number("LAB", text, 0, lab::kLabCount - 1));
}

[[noreturn]] void missing_argument(const std::string& name, const std::string& allowed) {
  throw InputError(
      {.file = "command line", .field = name, .message = "is missing", .allowed = allowed});
}

int required_lab(const std::vector<std::string>& words) {
  if (words.empty()) missing_argument("LAB", "a lab's number from 0 to 8");
  return parse_lab(words.front());
}

CommandResult start(const Arguments& args) {
  std::vector<std::string> words;
  std::optional<std::string> student_id, dir;
  Options options("lab start", "Makes a folder with a lab's task sheet and files to fill in.",
                  {"fuseline lab start 1", "fuseline lab start 3 --student ada --dir my-lab"});
  options.positional("LAB", "the lab's number, 0 to 8", words, 1);
  options.text("--student", "ID", "decides the shapes (me)", student_id);
  options.text("--dir", "DIR", "the folder to make (lab-NN)", dir);
  if (!options.parse(args)) return {options.help(), {}, ExitStatus::done};
  const int number = required_lab(words);
  const lab::Student student(student_id.value_or(lab::kDefaultStudent));
  const lab::Lab made = lab::make_lab(number, student);
  const fs::path folder = dir.value_or(lab::default_folder(number));
  lab::make_workspace(made, student, folder);

  std::string text = fmt::format("lab {}: {} ({} tasks, {} points, student {})\n\n", number,
                                 made.title, made.tasks.size(), lab::points_of(made), student.id());
  text += fmt::format("read     docs/labs/{}/README.md\n", made.folder);
  text += fmt::format("tasks    {}\n", (folder / "README.md").string());
  for (const auto& [name, unused] : lab::workspace_files(made, student)) {
    if (name == "README.md" || name.ends_with(".h")) continue;
    text += fmt::format("fill in  {}\n", (folder / name).string());
  }
  const std::string where = dir ? " --dir " + *dir : "";
  text += fmt::format("check    fuseline lab check {}{}\n", number, where);
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

lab::LabResult check_folder(const fs::path& folder, std::optional<int> number) {
  const fs::path file = folder / "answers.toml";
  if (kind_of_path(file) == PathKind::missing) {
    throw InputError(
        {.file = file.string(),
         .message = "there is no such file",
         .allowed = number ? fmt::format("a folder made by: fuseline lab start {}", *number)
                           : "a folder made by fuseline lab start"});
  }
  const lab::Answers head = lab::read_answers_head(file);
  const lab::Lab made = lab::make_lab(number.value_or(head.lab), lab::Student(head.student));
  return lab::check_lab(made, lab::read_answers(file, made), folder);
}

CommandResult check(const Arguments& args) {
  std::vector<std::string> words;
  std::optional<std::string> dir, result_path;
  Options options("lab check", "Judges the answers of a lab; writes result.json into its folder.",
                  {"fuseline lab check 1", "fuseline lab check 3 --dir my-lab"});
  options.positional("LAB", "the lab's number, 0 to 8", words, 1);
  options.text("--dir", "DIR", "the lab's folder (lab-NN)", dir);
  options.text("--result", "FILE", "the result for staff (result.json in that folder)",
               result_path);
  if (!options.parse(args)) return {options.help(), {}, ExitStatus::done};
  const int number = required_lab(words);
  const fs::path folder = dir.value_or(lab::default_folder(number));
  const lab::LabResult result = check_folder(folder, number);
  replace_file(result_path ? fs::path(*result_path) : folder / lab::kResultFile,
               lab::result_json(result));
  return {result_text(result), {}, result.passed() ? ExitStatus::done : ExitStatus::check_failed};
}

CommandResult hint(const Arguments& args) {
  std::vector<std::string> words;
  Options options("lab hint", "One hint for a task; the next one says more.",
                  {"fuseline lab hint 1.6", "fuseline lab hint 1.6 2"});
  options.positional("TASK", "the task, as in 1.6, and the hint's number (1)", words, 2);
  if (!options.parse(args)) return {options.help(), {}, ExitStatus::done};
  if (words.empty()) missing_argument("TASK", "a task, as in 1.6");
  const std::string& id = words.front();
  const lab::Lab made = lab::make_lab(parse_lab(id.substr(0, id.find('.'))), lab::Student());
  const auto task = std::ranges::find(made.tasks, id, &lab::Task::id);
  if (task == made.tasks.end()) {
    std::vector<std::string> ids;
    for (const lab::Task& t : made.tasks) ids.push_back(t.id);
    throw InputError({.file = "command line",
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
  std::optional<std::string> dir;
  Options options("lab report", "Checks every lab that was started in a folder.",
                  {"fuseline lab report", "fuseline lab report --dir ~/labs"});
  options.text("--dir", "DIR", "the folder that holds the labs' folders (.)", dir);
  if (!options.parse(args)) return {options.help(), {}, ExitStatus::done};
  const fs::path folder = dir.value_or(".");
  const std::vector<fs::path> found = lab::find_workspaces(folder);
  if (found.empty()) {
    throw InputError({.file = folder.string(),
                      .message = "holds no lab's folder",
                      .allowed = "one in which labs were started: fuseline lab start N"});
  }
  std::vector<std::vector<std::string>> rows;
  rows.reserve(found.size());
  int points = 0, of = 0;
  for (const fs::path& workspace : found) {
    const lab::LabResult result = check_folder(workspace, std::nullopt);
    std::vector<std::string> open;
    for (const lab::TaskResult& t : result.tasks) {
      if (t.verdict != lab::Verdict::right) open.push_back(t.id);
    }
    points += result.points();
    of += result.of();
    rows.push_back({workspace.filename().string(), fmt::format("{}", result.lab), result.student,
                    fmt::format("{}/{}", result.points(), result.of()),
                    fmt::format("{}", fmt::join(open, " "))});
  }
  const std::vector<Column> columns = {{"folder", Align::left},
                                       {"lab", Align::right},
                                       {"student", Align::left},
                                       {"points", Align::right},
                                       {"open tasks", Align::left}};
  return {format_table(columns, rows) + fmt::format("{} of {} points\n", points, of),
          {},
          points == of ? ExitStatus::done : ExitStatus::check_failed};
}

CommandResult list() {
  std::vector<std::vector<std::string>> rows;
  rows.reserve(lab::kLabCount);
  for (int n = 0; n < lab::kLabCount; ++n) {
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
    "       fuseline lab check N [--dir DIR] [--result FILE]  judges the answers in it\n"
    "       fuseline lab hint N.K [HINT]                      a hint for a task\n"
    "       fuseline lab report [--dir DIR]                   all labs started in a folder\n"
    "       fuseline lab list                                 the nine labs and their readings\n"
    "exit status: 0 all points, 1 some are missing, 2 an answer or a file cannot be read, or a\n"
    "function does not compile, 3 there is no C++ compiler\n";

}  // namespace

CommandResult lab_command(const Arguments& args) {
  if (args.empty()) {
    throw InputError({.file = "command line",
                      .field = "lab",
                      .message = "a word is missing",
                      .allowed = std::string(kVerbs) + ", each with --help"});
  }
  const std::string& verb = args.front();
  const Arguments rest(args.begin() + 1, args.end());
  if (verb == "--help" || verb == "-h") return {kHelp, {}, ExitStatus::done};
  if (verb == "start") return start(rest);
  if (verb == "check") return check(rest);
  if (verb == "hint") return hint(rest);
  if (verb == "report") return report(rest);
  if (verb == "list") return list();
  throw InputError({.file = "command line",
                    .field = "lab",
                    .value = verb,
                    .message = "there is no such word",
                    .allowed = kVerbs,
                    .nearest = nearest_name(verb, {"start", "check", "hint", "report", "list"})});
}

}  // namespace fuseline
