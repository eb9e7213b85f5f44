#include "sim/selection/verdict_request.h"

#include "base/error.h"
#include "model/policy.h"

namespace fuseline {

namespace {

// The policy below all edges: one, and not `custom`.
std::string parse_on(const std::string& text, const Workload& workload) {
  std::vector<std::string> names;
  for (const PolicyInfo& p : policies()) {
    if (workload.phase != Phase::train || p.trains) names.push_back(p.name);
  }
  return parse_word("--on", without_version("--on", text), names);
}

void refuse_roofline(const std::string& scenario, const Selection& s) {
  if (s.fidelity == Fidelity::hierarchy) return;
  throw InputError({.file = scenario,
                    .field = "fidelity",
                    .value = name_of(s.fidelity),
                    .message = "has no gains of edges: a roofline does not see what L2 holds",
                    .allowed = "hierarchy"});
}

}  // namespace

VerdictOptions verdict_options(const Selection& selection,
                               const std::optional<std::string>& scenario_path,
                               const std::optional<std::string>& on, bool quick) {
  if (scenario_path) refuse_roofline(*scenario_path, selection);
  VerdictOptions how{.on = parse_on(on.value_or("per-operator"), selection.workload),
                     .policies = selection.policies,
                     .turnings = !quick};
  std::erase(how.policies, kCustomPolicy);
  return how;
}

}  // namespace fuseline
