#include "lab/course/gradebook.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/csv_text.h"
#include "base/json_text.h"

namespace fuseline::lab {

std::string points_text(std::int64_t hundredths) {
  std::string text = fmt::format("{}.{:02}", hundredths / 100, hundredths % 100);
  text.erase(text.find_last_not_of('0') + 1);
  if (text.back() == '.') text.pop_back();
  return text;
}

std::string gradebook_csv(const Grading& grading) {
  std::string text = "student,lab,points,of,late_days,deduction,final,status,note\n";
  for (const GradeRow& row : grading.rows) {
    text += fmt::format("{},{},{},{},{},{},{},{},{}\n", csv_cell(row.student), row.lab, row.points,
                        row.of, row.late.days, points_text(row.deduction),
                        points_text(row.final_points()), name_of(row.status), csv_cell(row.note));
  }
  return text;
}

std::string gradebook_json(const Course& course, const Grading& grading) {
  using nlohmann::ordered_json;
  ordered_json rows = ordered_json::array();
  for (const GradeRow& row : grading.rows) {
    rows.push_back(
        {{"student", row.student},
         {"lab", row.lab},
         {"points", row.points},
         {"of", row.of},
         {"late_days", row.late.days},
         {"deduction", static_cast<double>(row.deduction) / 100},
         {"final", static_cast<double>(row.final_points()) / 100},
         {"status", name_of(row.status)},
         {"note", row.note},
         {"handed_in", row.handed_in ? ordered_json(moment_text(*row.handed_in, course.utc_offset))
                                     : ordered_json(nullptr)},
         {"place", row.place},
         {"result", row.result}});
  }
  ordered_json unassigned = ordered_json::array();
  for (const UnassignedSubmission& u : grading.unassigned) {
    unassigned.push_back({{"place", u.place}, {"reason", u.reason}});
  }
  return json_text({{"schema", kGradebookSchema},
                    {"course", course.name},
                    {"rows", std::move(rows)},
                    {"unassigned", std::move(unassigned)}});
}

}  // namespace fuseline::lab
