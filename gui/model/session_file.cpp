#include "gui/model/session_file.h"

#include <algorithm>

#include "base/error.h"
#include "base/output_file.h"
#include "sim/measured/measurement.h"

namespace fuseline::gui {

namespace {

namespace fs = std::filesystem;

// Names that load_model and load_gpu do not know get the session's file into the message.
void check_setup(const Setup& setup, const std::string& file, const std::string& of_run) {
  try {
    static_cast<void>(resolve(setup));
  } catch (const InputError& error) {
    InputProblem problem = error.problem();
    if (problem.file.empty()) problem.file = file;
    if (!of_run.empty()) problem.message += " (of run " + of_run + ")";
    throw InputError(std::move(problem));
  }
}

RunList saved_runs(const Scenario& scenario) {
  RunList runs;
  for (const ScenarioRun& s : scenario.runs) {
    Run run{.name = s.name,
            .policy = s.policy,
            .measurements = s.measurements.string(),
            .plan = s.plan.string(),
            .plan_text = s.plan_text,
            .plan_draft = s.plan_draft,
            .custom = s.custom,
            .setup = {}};
    if (s.setup) run.setup = from_scenario(*s.setup);
    runs.add(std::move(run));
  }
  if (const Run* baseline = runs.find(scenario.baseline)) runs.set_baseline(baseline->id);
  return runs;
}

}  // namespace

LoadedDocument load_document(const std::string& path) {
  const Scenario scenario = load_scenario(path);
  LoadedDocument out;
  Document& d = out.document;
  d.title = scenario.title;
  d.layers = scenario.layers;
  d.setup = from_scenario({scenario.model, scenario.gpu, scenario.what_if, scenario.workload,
                           scenario.fidelity, scenario.change});
  d.draft = scenario.draft;
  d.measurements = scenario.measurements.string();
  check_setup(d.setup, path, "");
  if (!scenario.runs.empty()) {
    d.runs = saved_runs(scenario);
    for (const Run& run : d.runs.all()) {
      if (run.setup) check_setup(*run.setup, path, run.name);
    }
    return out;
  }
  const CustomFusion custom = scenario.custom.value_or(CustomFusion{});
  std::vector<std::string> policies = scenario.policies;
  if (d.setup.workload.phase == Phase::train) {
    for (const PolicyInfo& p : fuseline::policies()) {
      if (!p.trains && std::erase(policies, p.name) > 0) {
        out.notes.push_back(p.name + " has no plan for training: left out");
      }
    }
  }
  try {
    d.runs = runs_for(d.setup, policies, custom, d.measurements);
  } catch (const InputError& error) {
    out.notes.emplace_back(error.what());
    d.runs = runs_for(d.setup, policies, custom, "");
  }
  return out;
}

Scenario to_scenario(const Document& d) {
  const ScenarioSetup setup = to_scenario(d.setup);
  Scenario s;
  s.title = d.title.empty() ? "Session" : d.title;
  s.model = setup.model;
  s.change = setup.change;
  s.draft = d.draft;
  s.gpu = setup.gpu;
  s.workload = setup.workload;
  s.fidelity = setup.fidelity;
  s.what_if = setup.what_if;
  s.layers = d.layers;
  s.measurements = d.measurements;
  for (const Run& run : d.runs.all()) {
    s.runs.push_back({run.name, run.policy, run.measurements, run.plan, run.plan_text,
                      run.plan_draft, run.custom,
                      run.setup ? std::optional(to_scenario(*run.setup)) : std::nullopt});
    if (run.is_measurement() || run.setup || run.has_plan()) continue;
    if (run.is_custom() && !s.custom) s.custom = run.custom;
    const bool known = std::ranges::find(s.policies, run.policy) != s.policies.end();
    if (!known) s.policies.push_back(run.policy);
  }
  // A scenario names at least one policy.
  if (s.policies.empty()) s.policies.push_back(fuseline::policies().front().name);
  if (!d.runs.all().empty()) s.baseline = d.runs.at(d.runs.baseline()).name;
  return s;
}

std::string document_text(const Document& document, const fs::path& folder) {
  return scenario_text(to_scenario(document), folder);
}

void save_document(const Document& document, const fs::path& path) {
  replace_file(path, document_text(document, fs::absolute(path).parent_path()));
}

}  // namespace fuseline::gui
