#include "lab/report.h"

#include <nlohmann/json.hpp>

#include "model/error.h"
#include "model/json_text.h"

namespace fuseline::lab {

const char* name_of(Verdict verdict) {
  switch (verdict) {
    case Verdict::right:
      return "right";
    case Verdict::wrong:
      return "wrong";
    case Verdict::unanswered:
      return "unanswered";
  }
  FUSELINE_ASSERT(false, "verdict");
}

std::string result_json(const LabResult& result) {
  nlohmann::ordered_json tasks = nlohmann::ordered_json::array();
  for (const TaskResult& t : result.tasks) {
    tasks.push_back({{"id", t.id},
                     {"points", t.points},
                     {"of", t.of},
                     {"verdict", name_of(t.verdict)},
                     {"answer", t.answer},
                     {"diagnosis", t.diagnosis}});
  }
  const nlohmann::ordered_json out = {{"schema", kResultSchema},   {"lab", result.lab},
                                      {"title", result.title},     {"student", result.student},
                                      {"points", result.points()}, {"of", result.of()},
                                      {"passed", result.passed()}, {"tasks", std::move(tasks)}};
  return json_text(out);
}

}  // namespace fuseline::lab
