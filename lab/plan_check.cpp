// Judges a student's choice of edges to keep on chip.
#include <algorithm>

#include <fmt/format.h>

#include "base/error.h"
#include "base/format.h"
#include "lab/check.h"
#include "lab/plan_bytes.h"
#include "lab/workspace.h"
#include "model/config/scenario.h"

namespace fuseline::lab {

namespace {

CustomFusion read_choices(const std::filesystem::path& file) {
  require_plain_file(file);
  const Scenario scenario = load_scenario(file.string());
  if (scenario.custom) return *scenario.custom;
  throw InputError({.file = file.string(),
                    .field = "custom",
                    .message = "the table is missing",
                    .allowed = "[custom] with rewrites and on_chip"});
}

}  // namespace

TaskResult judge_plan(const PlanKey& key, const std::filesystem::path& folder) {
  const CustomFusion choices = read_choices(folder / "plan.toml");
  TaskResult result;
  result.verdict = Verdict::wrong;
  if (choices.on_chip.empty()) {
    result.verdict = Verdict::unanswered;
    result.diagnosis = "plan.toml keeps no edge on chip yet";
    return result;
  }
  for (const std::string& name : choices.rewrites) {
    if (std::ranges::find(key.left_out, name) == key.left_out.end()) continue;
    result.diagnosis = fmt::format("uses the rewrite '{}', which this task leaves out", name);
    return result;
  }
  Plan plan;
  try {
    plan = make_plan(kCustomPolicy, key.model, key.workload, choices);
  } catch (const InputError& error) {
    const InputProblem& p = error.problem();
    result.diagnosis = fmt::format("not legal: {}: {}", p.value, p.message);
    if (!p.nearest.empty()) result.diagnosis += fmt::format("; did you mean '{}'?", p.nearest);
    return result;
  }
  const Bytes bytes = plan_bytes(plan);
  const std::string counted =
      fmt::format("{} MB in {} kernels", megabytes(bytes), plan.kernels.size());
  if (bytes <= key.most) {
    result.verdict = Verdict::right;
    result.diagnosis = counted;
    return result;
  }
  result.diagnosis =
      fmt::format("legal, but {}; at most {} MB are asked for", counted, megabytes(key.most));
  for (const Mistake& m : key.mistakes) {
    if (bytes.as_double() == m.value) result.diagnosis += ": " + m.diagnosis;
  }
  return result;
}

}  // namespace fuseline::lab
