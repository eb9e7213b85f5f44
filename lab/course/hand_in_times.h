// When something was handed in.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "lab/course/course.h"

namespace fuseline::lab {

// From a learning platform's table.
struct HandInTimes {
  std::map<std::pair<std::string, int>, Moment> by_row;
  std::size_t of_others = 0;  // lines about nobody of the course, or none of its labs
};

// Columns student, lab, time; of several lines about the same student and lab the latest counts.
// InputError (line, column): a cell that cannot be read.
HandInTimes read_hand_in_times(const std::filesystem::path& file, const Course& course);

// The newest change of these files in a folder, those that are there; none without any.
std::optional<Moment> newest_change(const std::filesystem::path& folder,
                                    const std::vector<std::string>& files);

}  // namespace fuseline::lab
