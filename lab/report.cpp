#include "lab/report.h"

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/json_text.h"

namespace fuseline::lab {

const char* name_of(Verdict verdict) {
  switch (verdict) {
    case Verdict::right:
      return "right";
    case Verdict::wrong:
      return "wrong";
    case Verdict::unanswered:
      return "unanswered";
    case Verdict::unjudged:
      return "unjudged";
  }
  FUSELINE_ASSERT(false, "verdict");
}

namespace {

using nlohmann::ordered_json;

ordered_json json_of(const LabResult& result) {
  ordered_json tasks = ordered_json::array();
  for (const TaskResult& t : result.tasks) {
    tasks.push_back({{"id", t.id},
                     {"points", t.points},
                     {"of", t.of},
                     {"verdict", name_of(t.verdict)},
                     {"answer", t.answer},
                     {"diagnosis", t.diagnosis}});
  }
  ordered_json errors = result.errors;
  for (const std::string& m : result.missing) errors.push_back(m);
  return {{"lab", result.lab},           {"title", result.title},    {"student", result.student},
          {"points", result.points()},   {"of", result.of()},        {"passed", result.passed()},
          {"errors", std::move(errors)}, {"tasks", std::move(tasks)}};
}

}  // namespace

std::string result_json(const LabResult& result) {
  ordered_json out = {{"schema", kResultSchema}};
  out.update(json_of(result));
  return json_text(out);
}

std::string report_json(const std::vector<FolderResult>& results) {
  ordered_json labs = ordered_json::array();
  int points = 0, of = 0;
  for (const FolderResult& r : results) {
    points += r.result.points();
    of += r.result.of();
    ordered_json lab = {{"folder", r.folder}};
    lab.update(json_of(r.result));
    labs.push_back(std::move(lab));
  }
  return json_text(
      {{"schema", kReportSchema}, {"points", points}, {"of", of}, {"labs", std::move(labs)}});
}

}  // namespace fuseline::lab
