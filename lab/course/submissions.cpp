#include "lab/course/submissions.h"

#include <algorithm>
#include <optional>
#include <system_error>

#include <fmt/format.h>

#include "base/error.h"
#include "base/lists.h"
#include "base/path_kind.h"
#include "lab/answers.h"
#include "lab/shown.h"
#include "lab/workspace.h"

namespace fuseline::lab {

namespace fs = std::filesystem;

namespace {

// Deeper than any platform unpacks. Both stop a search that somebody wants to be endless.
constexpr int kDeepest = 16;
constexpr std::size_t kMostEntries = 2'000'000;
constexpr std::size_t kShortId = 3;  // shorter ones stand in other words by chance

bool is_letter_or_digit(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

// Whether `id` stands in the name and no letter or digit touches it.
bool stands_in(const std::string& id, const std::string& name) {
  if (name == id) return true;
  if (id.size() < kShortId) return false;
  for (std::size_t at = 0; (at = name.find(id, at)) != std::string::npos; ++at) {
    const std::size_t end = at + id.size();
    if (at > 0 && is_letter_or_digit(name[at - 1])) continue;
    if (end < name.size() && is_letter_or_digit(name[end])) continue;
    return true;
  }
  return false;
}

// The lab whose folder is called so: "lab-03", also "lab-03 (2)".
std::optional<int> lab_named(const std::string& name) {
  for (int n = 0; n < lab_count(); ++n) {
    if (stands_in(default_folder(n), name)) return n;
  }
  return std::nullopt;
}

// The only student whom a folder's name means; an id that is a part of another one's gives way.
std::optional<std::string> student_named(const std::string& name, const Course& course) {
  std::vector<std::string> named;
  for (const std::string& id : course.students) {
    if (stands_in(id, name)) named.push_back(id);
  }
  std::vector<std::string> longest;
  for (const std::string& id : named) {
    const bool part = std::ranges::any_of(
        named, [&](const std::string& other) { return other != id && stands_in(id, other); });
    if (!part) longest.push_back(id);
  }
  if (longest.size() != 1) return std::nullopt;
  return longest.front();
}

class SubmissionSearch {
 public:
  SubmissionSearch(const Course& course, fs::path root) : course_(course), root_(std::move(root)) {}

  FoundSubmissions run() {
    walk(root_, {}, 0);
    return std::move(found_);
  }

 private:
  // Gives whether a submission was found in the folder or below.
  bool walk(const fs::path& folder, std::vector<std::string> way, int depth) {
    std::vector<fs::path> entries;
    try {
      entries = folder_entries(folder);
    } catch (const InputError& error) {
      found_.notes.push_back(fmt::format("{}: {}", place_of(folder), error.problem().message));
      return false;
    }
    entries_ += entries.size();
    if (entries_ > kMostEntries) {
      throw InputError({.file = root_.string(),
                        .message = fmt::format("holds more than {} files", kMostEntries),
                        .allowed = "a folder with what students handed in"});
    }
    bool any = false;
    for (const fs::path& entry : entries) {
      std::error_code failed;
      const fs::file_status status = fs::symlink_status(entry, failed);
      if (entry.filename() == "answers.toml" && !fs::is_directory(status)) {
        assign(folder, way);
        any = true;
      } else if (fs::is_symlink(status)) {
        if (fs::is_directory(entry, failed)) {
          found_.notes.push_back(place_of(entry) + ": is a link to a folder and was not followed");
        }
      } else if (fs::is_directory(status)) {
        if (depth == kDeepest) {
          found_.notes.push_back(fmt::format("{}: lies deeper than {} folders and was not searched",
                                             place_of(entry), kDeepest));
          continue;
        }
        std::vector<std::string> further = way;
        further.push_back(entry.filename().string());
        any = walk(entry, std::move(further), depth + 1) || any;
      }
    }
    if (!any && !way.empty() && lab_named(way.back())) {
      assign(folder, way);
      any = true;
    }
    return any;
  }

  [[nodiscard]] std::string place_of(const fs::path& path) const {
    const std::string place = path.lexically_relative(root_).string();
    return shown(place.empty() || place == "." ? root_.string() : place);
  }

  void assign(const fs::path& folder, const std::vector<std::string>& way) {
    const std::string place = place_of(folder);
    const auto unassigned = [&](std::string reason) {
      found_.unassigned.push_back({place, std::move(reason)});
    };
    std::optional<std::string> student;
    std::optional<int> lab;
    for (const std::string& name : way) {
      if (const auto named = lab_named(name)) {
        lab = named;  // the last one is the nearest
      } else if (!student) {
        student = student_named(name, course_);
      }
    }
    std::string problem;
    try {
      const Answers head = read_answers_head(folder / "answers.toml");
      lab = head.lab;
      if (!student) student = head.student;
    } catch (const InputError& error) {
      problem = error.problem().message;
    }
    if (!student) {
      return unassigned(
          fmt::format("nobody's name is on it, and its answers.toml {}", shown(problem)));
    }
    if (!holds(course_.students, *student)) {
      return unassigned(fmt::format("student '{}' is not in the course", shown(*student)));
    }
    if (!lab) return unassigned(fmt::format("of '{}', but which lab cannot be told", *student));
    if (std::ranges::find(course_.labs, *lab, &CourseLab::number) == course_.labs.end()) {
      return unassigned(
          fmt::format("of '{}', but the course does not have lab {}", *student, *lab));
    }
    found_.by_row[{*student, *lab}].push_back({folder, place});
  }

  const Course& course_;
  fs::path root_;
  std::size_t entries_ = 0;
  FoundSubmissions found_;
};

}  // namespace

FoundSubmissions find_submissions(const Course& course, const fs::path& root) {
  if (kind_of_path(root) != PathKind::folder) {
    throw InputError({.file = root.string(),
                      .message = "there is no such folder",
                      .allowed = "the folder with what students handed in"});
  }
  std::error_code failed;
  const fs::path inside = fs::weakly_canonical(course.folder, failed)
                              .lexically_relative(fs::weakly_canonical(root, failed));
  if (!inside.empty() && *inside.begin() != "..") {
    throw InputError({.file = root.string(),
                      .message = "the course's own folder lies in it, with everybody's labs",
                      .allowed = "a folder with nothing but what students handed in"});
  }
  return SubmissionSearch(course, root).run();
}

}  // namespace fuseline::lab
