// Who is fastest: what students measured of the race on their own GPUs.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "base/units.h"
#include "lab/course/course.h"

namespace fuseline::lab {

// One entry of a student. Times of different GPUs are compared by their share of what is possible
// there.
struct RaceEntry {
  std::string student;
  std::string place;    // from the folder that was searched
  std::string refused;  // why it does not count; empty: it does
  std::string device{};
  Seconds time{}, least{};  // measured; no GPU of this kind could take less

  [[nodiscard]] double share() const { return least / time; }
};

struct Leaderboard {
  std::vector<RaceEntry> entries;  // the best of each student, then those that do not count
  std::vector<std::string> notes;
};

// Every folder below `root` that holds a race.fuse and a speed.json, the answer of `fuseline
// program measure race.fuse --format json`. An entry counts when the measurement was accepted, is
// of exactly this race.fuse, and the programs compute what the race asks for. InputError as
// find_submissions().
Leaderboard read_leaderboard(const Course& course, const std::filesystem::path& root);

// rank,student,share,time_us,least_us,gpu,place,note
std::string leaderboard_csv(const Leaderboard& board);

}  // namespace fuseline::lab
