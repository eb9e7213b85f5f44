// What `search` is asked for.
#pragma once

#include <optional>
#include <string>

#include "sim/search/search.h"
#include "sim/selection/selection.h"

namespace fuseline {

// What was said, before it is checked; absent = not said.
struct SearchWords {
  std::optional<std::string> objective, pareto, budget, keep_together, keep_apart, kernels;
};

// time, and 20 seconds, where the words do not say. InputError: an unknown objective, two equal
// ones, a budget that is no time, no pair of operators, a scenario at fidelity roofline.
SearchOptions search_options(const Selection& selection,
                             const std::optional<std::string>& scenario_path,
                             const SearchWords& words);

}  // namespace fuseline
