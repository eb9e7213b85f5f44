#include "gui/model/document.h"

#include "base/data_dir.h"
#include "base/data_files.h"
#include "gui/model/choices.h"
#include "sim/measured/measurement.h"

namespace fuseline::gui {

Setup setup_of(const Document& document, const Run& run) {
  Setup setup = run.setup ? *run.setup : document.setup;
  if (run.is_measurement()) setup.what_if = {};
  return setup;
}

RunList runs_for(const Setup& setup, const std::vector<std::string>& policies,
                 const CustomFusion& custom, const std::string& measurements) {
  const PredictionCase c = resolve(setup);
  std::optional<Measurements> measured;
  if (!measurements.empty()) measured = load_measurements(measurements);
  RunList runs;
  for (const std::string& policy : policies) {
    Run run{.policy = policy};
    if (policy == kCustomPolicy) run.custom = custom;
    const RunId id = runs.add(std::move(run));
    if (policy == "unfused") runs.set_baseline(id);  // as in the command line's table
    if (!measured || measured->meta.gpu != c.gpu.name) continue;
    const BlockCase block{c.model.name, policy, c.workload};
    if (find_block(*measured, block) || find_trace(*measured, block)) {
      runs.add({.policy = policy, .measurements = measurements});
    }
  }
  return runs;
}

const std::vector<std::string>& default_policies() {
  static const std::vector<std::string> policies{"eager", "torch-compile", "coda"};
  return policies;
}

Document default_document() {
  const Scenario scenario = load_scenario("llama2-7b-h200");
  Document document;
  document.title = scenario.title;
  document.setup =
      from_scenario({scenario.model, scenario.gpu, {}, scenario.workload, scenario.fidelity, {}});
  document.measurements = scenario.measurements.string();
  document.runs = runs_for(document.setup, default_policies(), {}, document.measurements);
  // What our own kernels measured lies in a folder of its own.
  const std::string own = (data_dir() / "measurements/h200-fuseline").string();
  for (Run& run : measured_runs(load_measurements(own), document.setup))
    if (run.policy == "coda") document.runs.add(std::move(run));
  return document;
}

}  // namespace fuseline::gui
