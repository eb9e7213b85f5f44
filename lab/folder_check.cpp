#include "lab/folder_check.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/error.h"
#include "base/path_kind.h"
#include "lab/answers.h"
#include "lab/shown.h"
#include "lab/trick.h"
#include "lab/workspace.h"

namespace fuseline::lab {

namespace fs = std::filesystem;

namespace {

// Whoever gets the folder would have every key.
void refuse_secret_inside(const FolderCheck& what) {
  if (what.secret.file().empty()) return;
  std::error_code failed;
  const fs::path inside = fs::weakly_canonical(what.secret.file(), failed)
                              .lexically_relative(fs::weakly_canonical(what.folder, failed));
  if (inside.empty() || *inside.begin() == "..") return;
  throw InputError({.file = what.secret.file().string(),
                    .message = "the course's secret lies in a student's folder",
                    .allowed = "a place that no student can read"});
}

// Throws when the folder is not what it should be: then nothing in it counts.
void require_owner(const FolderCheck& what, const Answers& head, const fs::path& file) {
  const auto refuse = [&](const char* field, const std::string& value, std::string message,
                          std::string allowed) {
    throw InputError({.file = file.string(),
                      .field = field,
                      .value = value,
                      .message = std::move(message),
                      .allowed = std::move(allowed)});
  };
  if (what.lab && head.lab != *what.lab) {
    refuse("lab", std::to_string(head.lab),
           fmt::format("these are the answers of another lab than {}", *what.lab),
           fmt::format("a folder made by: fuseline lab start {}", *what.lab));
  }
  if (what.student && head.student != *what.student) {
    refuse("student", head.student,
           fmt::format("this folder is another student's: '{}' was expected", *what.student),
           "the folder that was started for this student");
  }
  if (head.secret != what.secret.name()) {
    refuse("secret", head.secret,
           fmt::format("this folder was started with another secret than '{}'", what.secret.name()),
           fmt::format("the course's secret: --secret FILE, or its file in {}", kSecretVariable));
  }
  if (head.tag != what.secret.tag(head.student, head.lab)) {
    refuse("tag", head.tag,
           fmt::format("this folder was not started for student '{}' and lab {}", head.student,
                       head.lab),
           "a folder as fuseline lab start made it, its first lines untouched");
  }
}

// The lab of a folder whose answers.toml does not say one: by its name.
std::optional<int> lab_by_name(const fs::path& folder) {
  for (int n = 0; n < lab_count(); ++n) {
    if (folder.filename() == default_folder(n)) return n;
  }
  return std::nullopt;
}

// Every task of the lab, none judged.
LabResult nothing_judged(std::optional<int> lab, const std::string& student, FolderState state,
                         const InputError& error) {
  LabResult result;
  result.state = state;
  result.student = shown(student);
  result.errors = {error.what()};
  result.lab = -1;
  if (!lab) return result;
  // Points and ids are the same for all students.
  const Lab made = make_lab(*lab, Student("nobody"));
  result.lab = made.number;
  result.title = made.title;
  for (const Task& task : made.tasks) {
    TaskResult t;
    t.id = task.id;
    t.of = task.points;
    t.verdict = Verdict::unjudged;
    t.diagnosis = shown(error.problem().message);
    result.tasks.push_back(std::move(t));
  }
  return result;
}

}  // namespace

LabResult check_folder(const FolderCheck& what) {
  const fs::path file = what.folder / "answers.toml";
  if (kind_of_path(what.folder) != PathKind::folder) {
    throw InputError({.file = what.folder.string(),
                      .message = "there is no such folder",
                      .allowed = fmt::format("a folder made by: fuseline lab start {}",
                                             what.lab ? std::to_string(*what.lab) : "N")});
  }
  refuse_secret_inside(what);
  std::optional<int> lab = what.lab ? what.lab : lab_by_name(what.folder);
  std::string student = what.student.value_or("");
  FolderState state = FolderState::broken;
  try {
    const Answers head = read_answers_head(file);
    if (!what.lab) lab = head.lab;
    student = head.student;
    state = FolderState::foreign;
    require_owner(what, head, file);
    state = FolderState::broken;
    const Lab made = make_lab(head.lab, Student(head.student, what.secret));
    return check_lab(made, read_answers(file, made), what.folder);
  } catch (const TrickError& error) {
    return nothing_judged(lab, student, FolderState::hostile, error);
  } catch (const InputError& error) {
    return nothing_judged(lab, student, state, error);
  }
}

}  // namespace fuseline::lab
