// One case as a self-contained HTML page: what is predicted of each policy, why its plan looks so,
// and the commands that give the numbers again.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/report/explained_plan.h"
#include "sim/report/prediction.h"

namespace fuseline {

struct ReportedCase {
  std::string title;  // empty: the model's
  PredictionCase what;
  std::vector<Prediction> predictions;      // at least one
  std::vector<ExplainedPlan> plans;         // of the same policies, in their order
  std::optional<MeasurementMeta> measured;  // where measured numbers come from
  std::vector<std::string> commands;
};

std::string html_report(const ReportedCase& report);

}  // namespace fuseline
