#include "sim/selection/search_request.h"

#include <algorithm>

#include "base/error.h"

namespace fuseline {

namespace {

constexpr double kLeastBudget = 0.01, kMostBudget = 1e6;  // seconds

Objective parse_objective(const char* option, const std::string& text) {
  const std::string word = parse_word(option, text, objective_words());
  const auto at = std::ranges::find(objective_words(), word);
  return static_cast<Objective>(at - objective_words().begin());
}

}  // namespace

SearchOptions search_options(const Selection& selection,
                             const std::optional<std::string>& scenario_path,
                             const SearchWords& words) {
  if (selection.fidelity != Fidelity::hierarchy)
    throw InputError({.file = scenario_path.value_or(kCommandLine),
                      .field = scenario_path ? "fidelity" : "--fidelity",
                      .value = name_of(selection.fidelity),
                      .message = "cannot be searched: a roofline does not see what L2 holds",
                      .allowed = "hierarchy"});
  SearchOptions options;
  options.policies = selection.policies;
  std::erase(options.policies, kCustomPolicy);
  if (words.kernels && parse_word("--kernels", *words.kernels, {"own", "any"}) == "any")
    options.allowed = Allowed::any_kernels;
  if (words.objective) options.objective = parse_objective("--objective", *words.objective);
  if (words.pareto) {
    options.front_with = parse_objective("--pareto", *words.pareto);
    if (options.front_with == options.objective)
      throw InputError({.file = kCommandLine,
                        .field = "--pareto",
                        .value = *words.pareto,
                        .message = "is the objective already",
                        .allowed = "another one than --objective"});
  }
  if (words.budget)
    options.budget_seconds = parse_number("--budget", *words.budget, kLeastBudget, kMostBudget);
  for (const auto& [text, together] :
       {std::pair{&words.keep_together, true}, std::pair{&words.keep_apart, false}}) {
    if (!*text) continue;
    for (Constraint& c : parse_constraints(**text, together))
      options.constraints.push_back(std::move(c));
  }
  return options;
}

}  // namespace fuseline
