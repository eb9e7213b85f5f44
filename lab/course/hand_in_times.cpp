#include "lab/course/hand_in_times.h"

#include <sys/stat.h>

#include <algorithm>

#include "base/csv.h"
#include "base/lists.h"

namespace fuseline::lab {

HandInTimes read_hand_in_times(const std::filesystem::path& file, const Course& course) {
  const CsvTable table(file.string());
  HandInTimes times;
  for (std::size_t row = 0; row < table.rows(); ++row) {
    const std::string& student = table.text(row, "student");
    const auto lab = static_cast<int>(std::min<std::int64_t>(table.whole(row, "lab"), 1'000));
    const auto moment = parse_moment(table.text(row, "time"), course.utc_offset);
    if (!moment) table.fail(row, "time", "is no day and time", kMomentSyntax);
    if (!holds(course.students, student) ||
        std::ranges::find(course.labs, lab, &CourseLab::number) == course.labs.end()) {
      ++times.of_others;
      continue;
    }
    const auto [known, fresh] = times.by_row.try_emplace({student, lab}, *moment);
    if (!fresh) known->second = std::max(known->second, *moment);
  }
  return times;
}

std::optional<Moment> newest_change(const std::filesystem::path& folder,
                                    const std::vector<std::string>& files) {
  std::optional<Moment> newest;
  for (const std::string& name : files) {
    struct stat about {};
    if (lstat((folder / name).c_str(), &about) != 0) continue;
    const Moment changed{std::chrono::seconds{about.st_mtim.tv_sec}};
    newest = newest ? std::max(*newest, changed) : changed;
  }
  return newest;
}

}  // namespace fuseline::lab
