#include "cli/search_formats.h"

#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/format.h"
#include "base/json_text.h"
#include "cli/long_work.h"
#include "cli/search_output.h"
#include "cli/table.h"
#include "sim/executor/parallel.h"
#include "sim/search/search_json.h"

namespace fuseline {

namespace {

[[noreturn]] void refuse(const char* option, const std::string& value, const char* message,
                         const char* allowed) {
  throw InputError({.file = kCommandLine,
                    .field = option,
                    .value = value,
                    .message = message,
                    .allowed = allowed});
}

[[noreturn]] void refuse_budget(const std::string& value, const FormatSearch& search) {
  const FormatPlan* nearest = &search.plans.front();
  for (const FormatPlan& p : search.plans)
    if (p.error < nearest->error) nearest = &p;
  throw InputError({.file = kCommandLine,
                    .field = "--error-budget",
                    .value = value,
                    .message = fmt::format("is below the error of every format: the smallest is "
                                           "{:.3g}, of {}",
                                           nearest->error, nearest->format),
                    .allowed = fmt::format("{:.3g} or more, or other --formats", nearest->error)});
}

}  // namespace

FormatAnswer search_formats(const std::optional<std::string>& scenario,
                            const SelectionWords& selection, const SearchWords& words,
                            const FormatWords& formats, SharedRun& run) {
  if (!formats.formats)
    refuse("--error-budget", *formats.error_budget, "is about number formats",
           "with --formats NAME,...");
  if (!formats.error_budget)
    refuse("--formats", *formats.formats, "needs the largest error that is allowed",
           "with --error-budget, for example 0.02");
  if (selection.weights)
    refuse("--weights", *selection.weights, "stands beside --formats, which says it",
           "one of the two");
  if (words.distribution)
    refuse("--distribution", *words.distribution, "stands beside --formats", "one of the two");
  const double budget = parse_number("--error-budget", *formats.error_budget, 1e-6, 10);
  std::vector<PredictionCase> cases;
  std::vector<Selection> selections;
  for (const std::string& name : parse_list("--formats", *formats.formats)) {
    SelectionWords in_format = selection;
    in_format.weights = name;
    selections.push_back(resolve_selection(scenario, in_format));
    if (selections.back().workload.phase == Phase::train)
      refuse("--formats", *formats.formats, "is about inference", "--phase forward or decode");
    cases.push_back(selections.back());
  }
  SearchOptions how = search_options(selections.front(), scenario, words);
  std::optional<FormatSearch> found;
  {
    const InterruptGuard guard;
    ProgressBar bar;
    how.stop = InterruptGuard::flag();
    how.sharing = &run.sharing();
    if (run.first())
      how.progress = [&bar](const std::string& what, double done) { bar.show(what, done); };
    FormatOptions options{.budget = budget};
    options.workers.threads = executor::available_threads();
    options.workers.stop = InterruptGuard::flag();
    found = search_formats(cases, how, options);
  }
  if (!found->best) refuse_budget(*formats.error_budget, *found);
  return {selections[*found->best], std::move(*found)};
}

std::string formats_text(const FormatAnswer& answer) {
  const FormatSearch& s = answer.search;
  std::vector<std::vector<std::string>> rows;
  for (std::size_t i = 0; i < s.plans.size(); ++i) {
    const FormatPlan& p = s.plans[i];
    rows.push_back({p.format, fmt::format("{:.2e}", p.error), p.worst,
                    in_microseconds(p.found.estimate.time),
                    megabytes(p.found.estimate.hbm_read + p.found.estimate.hbm_write),
                    i == s.best ? "chosen"
                    : p.within  ? "within"
                                : "over the budget"});
  }
  return format_table({{"weights", Align::left},
                       {"error"},
                       {"of", Align::left},
                       {"time µs"},
                       {"HBM MB"},
                       {"", Align::left}},
                      rows) +
         wrap(fmt::format(
             "error: relative L2 of the worst output against fp64 of the weights before "
             "they are rounded, random weights, {}; budget {:g}",
             describe(s.checked), s.budget)) +
         "\n" + search_text(answer.selection, s.plans[*s.best].found);
}

std::string formats_json(const FormatAnswer& answer) {
  const FormatSearch& s = answer.search;
  auto out = nlohmann::ordered_json::parse(search_json(answer.selection, s.plans[*s.best].found));
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const FormatPlan& p : s.plans)
    list.push_back(
        {{"weights", p.format},
         {"error", p.error},
         {"error_of", p.worst},
         {"within", p.within},
         {"time_us", to_us(p.found.estimate.time)},
         {"hbm_bytes", (p.found.estimate.hbm_read + p.found.estimate.hbm_write).value()}});
  out["error_budget"] = s.budget;
  out["formats"] = std::move(list);
  return json_text(out);
}

}  // namespace fuseline
