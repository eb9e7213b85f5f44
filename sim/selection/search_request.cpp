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

std::optional<DistributionRequest> distribution_request(const SearchWords& words) {
  constexpr std::int64_t kMostBuckets = 64;
  if (!words.distribution) {
    if (words.buckets)
      throw InputError({.file = kCommandLine,
                        .field = "--buckets",
                        .value = *words.buckets,
                        .message = "needs shapes that vary",
                        .allowed = "with --distribution FILE.csv"});
    return std::nullopt;
  }
  for (const auto& [option, text] :
       {std::pair{"--objective", &words.objective}, std::pair{"--pareto", &words.pareto}}) {
    if (*text && **text != "time")
      throw InputError({.file = kCommandLine,
                        .field = option,
                        .value = **text,
                        .message = "is not searched for shapes that vary",
                        .allowed = "time"});
  }
  DistributionRequest request{.shapes = read_distribution(*words.distribution)};
  if (words.buckets)
    request.buckets =
        static_cast<std::size_t>(parse_whole_number("--buckets", *words.buckets, 1, kMostBuckets));
  return request;
}

}  // namespace fuseline
