// What `search` is asked for.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/search/distribution.h"
#include "sim/selection/selection.h"

namespace fuseline {

// What was said, before it is checked; absent = not said.
struct SearchWords {
  std::optional<std::string> objective, pareto, budget, keep_together, keep_apart, kernels,
      distribution, buckets, sizes, calls, compile_seconds, cached_plans, page;
};

// Where --distribution says how long the sequences are, a phase may ask for no context of its own.
// InputError: sizes that the distribution has already (--context; --seq but in decode).
void leave_sizes_to_distribution(const SearchWords& words, SelectionWords& selection);

// What --distribution asks for; empty without it. InputError: as read_distribution and call_sizes;
// options that need a distribution, or that belong to a single shape.
struct DistributionRequest {
  Distribution distribution;
  CallSizes sizes;
  DistributionOptions options;
};
std::optional<DistributionRequest> distribution_request(const Selection& selection,
                                                        const SearchWords& words);

// time, and 20 seconds, where the words do not say. InputError: an unknown objective, two equal
// ones, a budget that is no time, no pair of operators, a scenario at fidelity roofline.
SearchOptions search_options(const Selection& selection,
                             const std::optional<std::string>& scenario_path,
                             const SearchWords& words);

}  // namespace fuseline
