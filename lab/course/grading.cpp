#include "lab/course/grading.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <set>
#include <system_error>

#include <fmt/format.h>

#include "base/error.h"
#include "base/printable.h"
#include "lab/answers.h"
#include "lab/course/hand_in_times.h"
#include "lab/course/kept_results.h"
#include "lab/folder_check.h"

namespace fuseline::lab {

namespace fs = std::filesystem;

namespace {

constexpr std::size_t kLongestNote = 400;  // bytes

// A lab as all students have it.
struct LabFacts {
  std::vector<std::string> files;  // that are handed in
  std::int64_t points = 0;
  bool has_function = false;
};

LabFacts facts_of(int number) {
  const Lab lab = make_lab(number, Student("nobody"));
  LabFacts facts;
  facts.points = points_of(lab);
  facts.files = {"answers.toml"};
  for (const Task& task : lab.tasks) {
    const std::string file = file_of(task);
    if (!file.empty() && std::ranges::find(facts.files, file) == facts.files.end()) {
      facts.files.push_back(file);
    }
    facts.has_function = facts.has_function || std::holds_alternative<FunctionKey>(task.key);
  }
  return facts;
}

// One folder and what it is worth.
struct Judged {
  Submission submission;
  std::string student;
  int lab = 0;
  std::string fingerprint{};
  std::optional<Moment> changed{};
  LabResult result{};
  std::string internal{};  // our own bug met it: nothing was judged
  bool from_before = false;
};

std::string one_line_note(const std::vector<std::string>& parts) {
  std::string note = fmt::format("{}", fmt::join(parts, "; "));
  std::ranges::replace(note, '\n', ' ');
  return printable(note, kLongestNote);
}

RowStatus status_of(const Judged& j) {
  if (!j.internal.empty() || !j.result.missing.empty()) return RowStatus::unjudged;
  switch (j.result.state) {
    case FolderState::foreign:
      return RowStatus::not_theirs;
    case FolderState::hostile:
      return RowStatus::hostile;
    case FolderState::broken:
      return RowStatus::broken;
    case FolderState::judged:
      return j.result.trick() != nullptr ? RowStatus::hostile : RowStatus::graded;
  }
  FUSELINE_ASSERT(false, "state");
}

// Why the row is not simply graded, of the submission alone.
std::string reason_of(const Judged& j) {
  if (!j.internal.empty()) return "a bug of fuseline: " + j.internal;
  if (!j.result.missing.empty()) return "not judged: " + j.result.missing.front();
  if (const TaskResult* trick = j.result.trick()) return trick->id + ": " + trick->diagnosis;
  if (j.result.state != FolderState::judged) {
    const std::string why =
        j.result.tasks.empty() ? j.result.errors.front() : j.result.tasks.front().diagnosis;
    return j.result.state == FolderState::foreign ? why : "answers.toml: " + why;
  }
  if (std::ranges::all_of(j.result.tasks,
                          [](const TaskResult& t) { return t.verdict == Verdict::unanswered; })) {
    return "no task is answered";
  }
  std::vector<std::string> unread;
  for (const TaskResult& t : j.result.tasks) {
    if (t.verdict == Verdict::unjudged) unread.push_back(t.id);
  }
  return unread.empty() ? "" : fmt::format("cannot be read: {}", fmt::join(unread, ", "));
}

class CourseGrader {
 public:
  CourseGrader(const Course& course, const GradingOptions& options)
      : course_(course), options_(options), kept_(course.grades() / "results") {
    for (const CourseLab& lab : course.labs) facts_[lab.number] = facts_of(lab.number);
    if (options.submitted) times_ = read_hand_in_times(*options.submitted, course);
  }

  Grading run() {
    FoundSubmissions found = find_submissions(course_, options_.submissions);
    grading_.unassigned = std::move(found.unassigned);
    grading_.notes = std::move(found.notes);
    if (times_.of_others > 0) {
      grading_.notes.push_back(fmt::format(
          "{}: {} {} about nobody of the course, or none of its labs", options_.submitted->string(),
          times_.of_others, times_.of_others == 1 ? "line is" : "lines are"));
    }
    make_folder_of_results();
    std::vector<Judged> all;
    for (const auto& [row, submissions] : found.by_row) {
      for (const Submission& s : submissions) {
        all.push_back({.submission = s, .student = row.first, .lab = row.second});
      }
    }
    const bool done = parallel_for(
        all.size(), [&](std::size_t i) { judge(all[i]); }, options_.parallel);
    if (!done) {
      grading_.stopped = true;
      return std::move(grading_);
    }
    std::map<std::pair<std::string, int>, std::vector<Judged>> by_row;
    for (Judged& j : all) {
      ++(j.from_before ? grading_.kept : grading_.judged);
      for (const std::string& m : j.result.missing) {
        if (std::ranges::find(grading_.missing, m) == grading_.missing.end()) {
          grading_.missing.push_back(m);
        }
      }
      by_row[{j.student, j.lab}].push_back(std::move(j));
    }
    for (const std::string& student : course_.students) {
      for (const CourseLab& lab : course_.labs) {
        grading_.rows.push_back(row_of(student, lab.number, by_row[{student, lab.number}]));
      }
    }
    return std::move(grading_);
  }

 private:
  void make_folder_of_results() const {
    std::error_code failed;
    fs::create_directories(course_.grades() / "results", failed);
    if (!failed) return;
    throw InputError(
        {.file = course_.grades().string(), .message = "cannot be made: " + failed.message()});
  }

  // On any thread. Whatever one submission does, the others are judged.
  void judge(Judged& j) {
    const LabFacts& facts = facts_.at(j.lab);
    j.changed = newest_change(j.submission.folder, facts.files);
    j.fingerprint = fingerprint(j.submission.folder, facts.files, j.student, j.lab, course_.secret);
    if (!options_.again) {
      if (auto before = kept_.find(j.student, j.lab, j.fingerprint)) {
        j.result = std::move(*before);
        j.from_before = true;
        return;
      }
    }
    try {
      j.result = check_folder({.folder = j.submission.folder,
                               .lab = j.lab,
                               .student = j.student,
                               .secret = course_.secret});
    } catch (const InputError& error) {
      j.result.lab = j.lab;
      j.result.student = j.student;
      j.result.state = FolderState::broken;
      j.result.errors = {error.what()};
    } catch (const MissingError& error) {
      j.result.missing = {error.what()};
    } catch (const std::exception& error) {
      j.internal = error.what();
    }
    if (facts.has_function && j.result.state == FolderState::judged) {
      const std::lock_guard lock(mutex_);
      grading_.ran_functions = true;
    }
    if (j.internal.empty() && j.result.missing.empty()) {
      kept_.keep(j.student, j.lab, j.fingerprint, j.result);
    }
  }

  // Of several the newest that was judged counts, else the newest.
  static const Judged& counting(const std::vector<Judged>& all) {
    return *std::ranges::max_element(all, {}, [](const Judged& j) {
      return std::tuple(j.internal.empty() && j.result.state == FolderState::judged, j.changed,
                        j.submission.place);
    });
  }

  GradeRow row_of(const std::string& student, int lab, const std::vector<Judged>& all) const {
    GradeRow row;
    row.student = student;
    row.lab = lab;
    row.of = facts_.at(lab).points;
    const auto given = times_.by_row.find({student, lab});
    if (given != times_.by_row.end()) row.handed_in = given->second;
    if (all.empty()) {
      row.note = given == times_.by_row.end()
                     ? "nothing was handed in"
                     : "the table says that it was handed in, and no folder is theirs";
      return row;
    }
    const Judged& counts = counting(all);
    row.place = counts.submission.place;
    row.points = counts.result.points();
    row.status = status_of(counts);
    if (counts.internal.empty() && counts.result.state == FolderState::judged)
      row.tasks = counts.result.tasks;
    row.result = "results/" + KeptResults::name(student, lab, counts.fingerprint);
    if (!row.handed_in) row.handed_in = counts.changed;
    std::vector<std::string> parts;
    if (std::string reason = reason_of(counts); !reason.empty()) parts.push_back(reason);
    add_others(all, counts, row, parts);
    add_lateness(given != times_.by_row.end(), row, parts);
    row.note = one_line_note(parts);
    return row;
  }

  static void add_others(const std::vector<Judged>& all, const Judged& counts, GradeRow& row,
                         std::vector<std::string>& parts) {
    std::set<std::string> contents;
    std::vector<std::string> others;
    for (const Judged& j : all) {
      if (!contents.insert(j.fingerprint).second || j.fingerprint == counts.fingerprint) continue;
      others.push_back(fmt::format("{} ({})", j.submission.place,
                                   j.result.state == FolderState::judged
                                       ? fmt::format("{} points", j.result.points())
                                       : name_of(status_of(j))));
    }
    if (others.empty()) return;  // the same several times over
    if (row.status == RowStatus::graded) row.status = RowStatus::several;
    parts.push_back(fmt::format("{} submissions: {} counts, as the newest; not {}",
                                others.size() + 1, counts.submission.place,
                                fmt::join(others, ", ")));
  }

  void add_lateness(bool from_table, GradeRow& row, std::vector<std::string>& parts) const {
    const auto deadline = course_.deadline(row.student, row.lab);
    if (!deadline || !row.handed_in) return;
    row.late = lateness(*row.handed_in, *deadline, course_.late);
    row.deduction = late_deduction(row.points, row.late, course_.late);
    if (row.late.too_late &&
        (row.status == RowStatus::graded || row.status == RowStatus::several)) {
      row.status = RowStatus::too_late;
    }
    if (row.late.days > 0) {
      parts.push_back(fmt::format("handed in {}{}", moment_text(*row.handed_in, course_.utc_offset),
                                  from_table ? "" : " by the newest change of its files"));
    }
  }

  const Course& course_;
  const GradingOptions& options_;
  KeptResults kept_;
  std::map<int, LabFacts> facts_;
  HandInTimes times_;
  std::mutex mutex_;
  Grading grading_;
};

}  // namespace

const char* name_of(RowStatus status) {
  switch (status) {
    case RowStatus::missing:
      return "missing";
    case RowStatus::not_theirs:
      return "not theirs";
    case RowStatus::hostile:
      return "hostile";
    case RowStatus::broken:
      return "broken";
    case RowStatus::unjudged:
      return "unjudged";
    case RowStatus::several:
      return "several";
    case RowStatus::too_late:
      return "too late";
    case RowStatus::graded:
      return "graded";
  }
  FUSELINE_ASSERT(false, "status");
}

Grading grade_course(const Course& course, const GradingOptions& options) {
  return CourseGrader(course, options).run();
}

}  // namespace fuseline::lab
