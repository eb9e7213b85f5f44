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
    if (t.trick) tasks.back()["trick"] = true;
  }
  ordered_json errors = result.errors;
  for (const std::string& m : result.missing) errors.push_back(m);
  return {{"lab", result.lab},
          {"title", result.title},
          {"student", result.student},
          {"points", result.points()},
          {"of", result.of()},
          {"passed", result.passed()},
          {"folder", name_of(result.state)},
          {"errors", std::move(errors)},
          {"tasks", std::move(tasks)}};
}

// The value of an enumeration that has this name.
template <typename Enumeration>
Enumeration value_named(const std::string& name, const std::vector<Enumeration>& values,
                        const std::string& file) {
  for (const Enumeration value : values) {
    if (name == name_of(value)) return value;
  }
  throw InputError({.file = file, .value = name, .message = "is no word of a lab's result"});
}

LabResult result_of(const nlohmann::json& json, const std::string& file) {
  LabResult result;
  result.lab = json.at("lab").get<int>();
  result.title = json.at("title").get<std::string>();
  result.student = json.at("student").get<std::string>();
  result.errors = json.at("errors").get<std::vector<std::string>>();
  result.state = value_named<FolderState>(
      json.at("folder").get<std::string>(),
      {FolderState::judged, FolderState::foreign, FolderState::broken, FolderState::hostile}, file);
  for (const nlohmann::json& t : json.at("tasks")) {
    TaskResult task;
    task.id = t.at("id").get<std::string>();
    task.points = t.at("points").get<int>();
    task.of = t.at("of").get<int>();
    task.verdict = value_named<Verdict>(
        t.at("verdict").get<std::string>(),
        {Verdict::right, Verdict::wrong, Verdict::unanswered, Verdict::unjudged}, file);
    task.answer = t.at("answer").get<std::string>();
    task.diagnosis = t.at("diagnosis").get<std::string>();
    task.trick = t.value("trick", false);
    result.tasks.push_back(std::move(task));
  }
  return result;
}

}  // namespace

const char* name_of(FolderState state) {
  switch (state) {
    case FolderState::judged:
      return "judged";
    case FolderState::foreign:
      return "foreign";
    case FolderState::broken:
      return "broken";
    case FolderState::hostile:
      return "hostile";
  }
  FUSELINE_ASSERT(false, "state");
}

LabResult result_of_json(const std::string& text, const std::string& file) {
  const nlohmann::json json = parse_json(text, file);
  try {
    return result_of(json, file);
  } catch (const nlohmann::json::exception& error) {
    throw InputError(
        {.file = file, .message = std::string("is no result of a lab: ") + error.what()});
  }
}

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
