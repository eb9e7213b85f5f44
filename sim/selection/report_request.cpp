#include "sim/selection/report_request.h"

#include "sim/selection/selection_text.h"

namespace fuseline {

ReportedCase report_case(const std::optional<std::string>& scenario_path,
                         const SelectionWords& words,
                         const std::optional<std::string>& measurements,
                         const std::function<void(const std::string&, double)>& progress) {
  Selection s = resolve_selection(scenario_path, words);
  if (measurements) s.measurements = *measurements;
  std::optional<Measurements> measured;
  if (s.measurements) measured = load_measurements(*s.measurements);
  ReportedCase report;
  for (const std::string& policy : s.policies) {
    if (progress)
      progress(policy,
               static_cast<double>(report.plans.size()) / static_cast<double>(s.policies.size()));
    const Plan plan = plan_of(s, policy);
    report.predictions.push_back(predict(plan, s, measured ? &*measured : nullptr));
    report.plans.push_back(explain_on(plan, s.gpu));
  }
  if (measured && measured->meta.gpu == s.gpu.name) report.measured = measured->meta;
  const auto command = [&](const char* verb, bool simulation) {
    const std::string options = options_text(scenario_path, words, simulation);
    return std::string("fuseline ") + verb + (options.empty() ? "" : " " + options);
  };
  report.commands = {command("predict", true) + " --kernels", command("explain", false)};
  if (s.fidelity == Fidelity::hierarchy && s.policies.size() > 1)
    report.commands.push_back(command("verdict", false));
  report.title = s.title;
  report.what = std::move(s);
  return report;
}

}  // namespace fuseline
