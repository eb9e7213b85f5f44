#include "lab/course/leaderboard.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <iterator>
#include <set>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/csv_text.h"
#include "base/error.h"
#include "base/json_text.h"
#include "lab/course/race.h"
#include "lab/course/submissions.h"
#include "lab/shown.h"
#include "lab/workspace.h"
#include "model/programs/program_file.h"

namespace fuseline::lab {

namespace {

namespace fs = std::filesystem;

constexpr std::uintmax_t kMostBytes = std::uintmax_t{4} << 20;  // of a file that is read

std::string text_of(const fs::path& path) {
  require_plain_file(path);
  std::error_code failed;
  const std::uintmax_t bytes = fs::file_size(path, failed);
  if (failed || bytes > kMostBytes) {
    throw InputError(
        {.file = path.string(), .message = failed ? failed.message() : "is larger than 4 MiB"});
  }
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

// A number of the measurement above 0.
double positive(const nlohmann::json& object, const char* key) {
  const auto at = object.find(key);
  if (at == object.end() || !at->is_number() || !std::isfinite(at->get<double>()) ||
      at->get<double>() <= 0) {
    throw InputError(
        {.field = key,
         .message = "is no number above 0",
         .allowed = "the answer of 'fuseline program measure race.fuse --format json'"});
  }
  return at->get<double>();
}

// Fills in what was measured. Gives why the entry does not count; empty when it does.
std::string judge_entry(const fs::path& folder, RaceEntry& entry) {
  const nlohmann::json speed = parse_json(text_of(folder / kSpeedFile), kSpeedFile);
  if (!speed.is_object() || !speed.contains("measured") || !speed["measured"].is_object() ||
      !speed.contains("device") || !speed["device"].is_string()) {
    return "speed.json is not the answer of 'fuseline program measure race.fuse --format json'";
  }
  entry.device = shown(speed["device"].get<std::string>());
  entry.time = Seconds(positive(speed["measured"], "time_us") * 1e-6);
  entry.least = Seconds(positive(speed, "least_possible_us") * 1e-6);
  if (!speed.value("accepted", nlohmann::json(false)).is_boolean() ||
      !speed.value("accepted", nlohmann::json(false)).get<bool>()) {
    return "the measurement was not accepted: speed.json says why";
  }
  if (entry.time < entry.least) return "is faster than this GPU can be";
  std::error_code failed;
  if (!fs::exists(fs::symlink_status(folder / kRaceFile, failed))) {
    return std::string("there is no ") + kRaceFile + " beside it";
  }
  const std::string text = text_of(folder / kRaceFile);
  if (speed.value("hash", nlohmann::json("")) != hash_of_text(text)) {
    return std::string("was measured with another ") + kRaceFile + " than lies beside it";
  }
  const TaskResult result = judge_race(text, kRaceFile);
  return result.verdict == Verdict::right ? std::string() : result.diagnosis;
}

RaceEntry entry_of(const std::string& student, const Submission& submission) {
  RaceEntry entry{.student = student, .place = submission.place, .refused = {}};
  try {
    entry.refused = judge_entry(submission.folder, entry);
  } catch (const InputError& error) {
    const InputProblem& p = error.problem();
    entry.refused = fmt::format("{}{}{}", p.field, p.field.empty() ? "" : " ", p.message);
  }
  entry.refused = shown(entry.refused);
  return entry;
}

}  // namespace

Leaderboard read_leaderboard(const Course& course, const fs::path& root) {
  FoundSubmissions found = find_submissions(course, root);
  Leaderboard board;
  board.notes = std::move(found.notes);
  for (const auto& [row, submissions] : found.by_row) {
    for (const Submission& s : submissions) {
      std::error_code failed;
      if (!fs::exists(fs::symlink_status(s.folder / kSpeedFile, failed))) continue;
      board.entries.push_back(entry_of(row.first, s));
    }
  }
  const auto counts = [](const RaceEntry& e) { return e.refused.empty(); };
  std::ranges::stable_sort(board.entries, [&](const RaceEntry& a, const RaceEntry& b) {
    if (counts(a) != counts(b)) return counts(a);
    return counts(a) && a.share() > b.share();
  });
  // The best of each student.
  std::set<std::string> seen;
  std::erase_if(board.entries,
                [&](const RaceEntry& e) { return counts(e) && !seen.insert(e.student).second; });
  return board;
}

std::string leaderboard_csv(const Leaderboard& board) {
  std::string text = "rank,student,share,time_us,least_us,gpu,place,note\n";
  int rank = 0;
  for (const RaceEntry& e : board.entries) {
    const bool counts = e.refused.empty();
    text += fmt::format("{},{},{},{},{},{},{},{}\n", counts ? std::to_string(++rank) : "",
                        csv_cell(e.student), counts ? fmt::format("{:.4f}", e.share()) : "",
                        counts ? fmt::format("{:.2f}", e.time.value() * 1e6) : "",
                        counts ? fmt::format("{:.2f}", e.least.value() * 1e6) : "",
                        csv_cell(e.device), csv_cell(e.place), csv_cell(e.refused));
  }
  return text;
}

}  // namespace fuseline::lab
