#include "lab/course/feedback.h"

#include <algorithm>
#include <array>
#include <map>
#include <string_view>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "base/csv_text.h"
#include "base/data_files.h"
#include "base/error.h"
#include "base/output_file.h"
#include "base/printable.h"
#include "lab/course/gradebook.h"
#include "lab/report.h"

namespace fuseline::lab {

namespace {

constexpr std::size_t kLongestCell = 600;  // bytes of what a student wrote or printed

// In one line, every character that Markdown or HTML could take for markup as an entity.
std::string markdown_cell(const std::string& text) {
  std::string out;
  for (const char c : printable(text, kLongestCell)) {
    if (std::string_view("&<>|`*_[]\\~").find(c) != std::string_view::npos)
      out += fmt::format("&#{};", static_cast<int>(c));
    else
      out += c;
  }
  return out;
}

// What stands on a student's page of one lab.
std::string lab_section(const Lab& lab, const GradeRow& row) {
  std::string text = fmt::format("\n## Lab {}: {}\n\n", lab.number, lab.title);
  text += fmt::format("{} of {} points", row.points, row.of);
  if (row.deduction > 0)
    text += fmt::format("; {} after {} day{} late", points_text(row.final_points()), row.late.days,
                        row.late.days == 1 ? "" : "s");
  text += row.status == RowStatus::graded ? "." : fmt::format(". State: {}.", name_of(row.status));
  if (!row.note.empty()) text += fmt::format(" Note: {}.", markdown_cell(row.note));
  text += "\n";
  if (row.tasks.empty()) return text;
  text +=
      "\n| task | points | your answer | verdict | what to think about |\n|---|---|---|---|---|\n";
  for (const TaskResult& task : row.tasks)
    text += fmt::format("| {} | {}/{} | {} | {} | {} |\n", task.id, task.points, task.of,
                        markdown_cell(task.answer), name_of(task.verdict),
                        task.verdict == Verdict::right ? "" : markdown_cell(task.diagnosis));
  return text;
}

struct TaskCounts {
  std::array<std::size_t, 4> verdicts{};  // by Verdict
  std::map<std::string, std::size_t> diagnoses;
};

// The most frequent one, of equally frequent ones the first of the alphabet.
std::pair<std::string, std::size_t> most_frequent(const TaskCounts& counts) {
  std::pair<std::string, std::size_t> most;
  for (const auto& [diagnosis, times] : counts.diagnoses)
    if (times > most.second) most = {diagnosis, times};
  return most;
}

}  // namespace

std::string tasks_csv(const Course& course, const Grading& grading) {
  std::map<std::pair<int, std::string>, TaskCounts> counts;
  for (const GradeRow& row : grading.rows)
    for (const TaskResult& task : row.tasks) {
      TaskCounts& all = counts[{row.lab, task.id}];
      ++all.verdicts.at(static_cast<std::size_t>(task.verdict));
      if (task.verdict == Verdict::wrong && !task.diagnosis.empty())
        ++all.diagnoses[printable(task.diagnosis, kLongestCell)];
    }
  std::string text = "lab,task,right,wrong,unanswered,unjudged,most_frequent_diagnosis,times\n";
  for (const CourseLab& entry : course.labs)
    for (const Task& task : make_lab(entry.number, Student("nobody")).tasks) {
      const TaskCounts& all = counts[{entry.number, task.id}];
      const auto number = [&](Verdict v) { return all.verdicts.at(static_cast<std::size_t>(v)); };
      const auto [diagnosis, times] = most_frequent(all);
      text +=
          fmt::format("{},{},{},{},{},{},{},{}\n", entry.number, task.id, number(Verdict::right),
                      number(Verdict::wrong), number(Verdict::unanswered),
                      number(Verdict::unjudged), csv_cell(diagnosis), times);
    }
  return text;
}

std::string feedback_page(const Course& course, const Grading& grading,
                          const std::string& student) {
  std::string text = fmt::format("# {}: {}\n", markdown_cell(course.name), markdown_cell(student));
  for (const GradeRow& row : grading.rows)
    if (row.student == student) text += lab_section(make_lab(row.lab, Student("nobody")), row);
  return text;
}

WrittenFeedback write_feedback(const Course& course, const Grading& grading,
                               const std::filesystem::path& folder) {
  std::error_code failed;
  std::filesystem::create_directories(folder, failed);
  if (failed)
    throw InputError({.file = folder.string(), .message = "cannot be made: " + failed.message()});
  WrittenFeedback written;
  for (const std::string& student : course.students) {
    const std::string text = feedback_page(course, grading, student);
    const std::filesystem::path file = folder / (student + ".md");
    ++written.pages;
    if (std::filesystem::is_regular_file(file, failed) && read_input_file(file) == text) continue;
    replace_file(file, text);
    ++written.changed;
  }
  return written;
}

}  // namespace fuseline::lab
