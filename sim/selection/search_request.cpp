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

Distribution distribution_of(const std::string& name_or_path) {
  try {
    return read_distribution(name_or_path);
  } catch (const InputError& error) {
    InputProblem problem = error.problem();
    if (!problem.file.empty()) throw;
    problem.file = kCommandLine;
    problem.field = "--distribution";
    throw InputError(std::move(problem));
  }
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
  if (words.kernels) {
    const std::string kernels = parse_word("--kernels", *words.kernels, {"own", "chains", "any"});
    if (kernels == "chains") options.allowed = Allowed::with_chains;
    if (kernels == "any") options.allowed = Allowed::any_kernels;
  }
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

void leave_sizes_to_distribution(const SearchWords& words, SelectionWords& selection) {
  if (!words.distribution) return;
  const bool decodes = selection.phase == "decode";
  const auto refuse = [](const char* option, const std::string& value) {
    throw InputError({.file = kCommandLine,
                      .field = option,
                      .value = value,
                      .message = "stands beside --distribution, which says it",
                      .allowed = "one of the two"});
  };
  if (selection.context) refuse("--context", *selection.context);
  if (selection.seq && !decodes) refuse("--seq", *selection.seq);
  // Every shape brings its own; the selection must have one to be checked.
  if (decodes) selection.context = selection.seq.value_or("1");
}

std::optional<DistributionRequest> distribution_request(const Selection& selection,
                                                        const SearchWords& words) {
  constexpr std::int64_t kMostBuckets = 64, kMostSizes = 64, kMostPlans = 1'000'000'000;
  constexpr std::int64_t kLargestPage = 1 << 20;  // tokens
  constexpr std::size_t kSizes = 12;
  constexpr double kMostCalls = 1e15, kMostSeconds = 1e6;
  if (!words.distribution) {
    for (const auto& [option, text] :
         {std::pair{"--buckets", &words.buckets}, std::pair{"--sizes", &words.sizes},
          std::pair{"--calls", &words.calls},
          std::pair{"--compile-seconds", &words.compile_seconds},
          std::pair{"--cached-plans", &words.cached_plans}, std::pair{"--page", &words.page}}) {
      if (*text)
        throw InputError({.file = kCommandLine,
                          .field = option,
                          .value = **text,
                          .message = "needs shapes that vary",
                          .allowed = "with --distribution FILE|NAME"});
    }
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
  DistributionRequest request{
      .distribution = distribution_of(*words.distribution), .sizes = {}, .options = {}};
  std::size_t sizes = kSizes;
  if (words.sizes) {
    if (!request.distribution.shapes.empty())
      throw InputError({.file = kCommandLine,
                        .field = "--sizes",
                        .value = *words.sizes,
                        .message = "gathers requests, and this distribution is a list of shapes",
                        .allowed = "without --sizes, or a distribution of requests"});
    sizes = static_cast<std::size_t>(parse_whole_number("--sizes", *words.sizes, 1, kMostSizes));
  }
  if (words.buckets)
    request.options.buckets =
        static_cast<std::size_t>(parse_whole_number("--buckets", *words.buckets, 1, kMostBuckets));
  if (words.calls) request.options.calls = parse_number("--calls", *words.calls, 1, kMostCalls);
  if (words.compile_seconds)
    request.options.compile =
        Seconds(parse_number("--compile-seconds", *words.compile_seconds, 0, kMostSeconds));
  if (words.cached_plans)
    request.options.cached =
        parse_whole_number("--cached-plans", *words.cached_plans, 0, kMostPlans);
  const auto& shapes = request.distribution.shapes;
  const bool mixed = !shapes.empty() && shapes.front().mixed();
  if (mixed && words.kernels == "any")
    throw InputError({.file = kCommandLine,
                      .field = "--kernels",
                      .value = *words.kernels,
                      .message =
                          "may put attention into other kernels, which calls whose sequences "
                          "differ run once for all of them",
                      .allowed = "own or chains"});
  if (words.page) {
    if (!mixed)
      throw InputError({.file = kCommandLine,
                        .field = "--page",
                        .value = *words.page,
                        .message = "needs calls whose sequences are given",
                        .allowed = "a CSV of sequences and weight"});
    request.options.page = parse_whole_number("--page", *words.page, 1, kLargestPage);
  }
  request.sizes = call_sizes(request.distribution, selection.workload, sizes);
  return request;
}

}  // namespace fuseline
