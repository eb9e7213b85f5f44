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
      distribution, buckets;
};

// The shapes of --distribution, and how many plans serve them (3). InputError: as
// read_distribution;
// --buckets without a distribution; options that belong to a single shape.
struct DistributionRequest {
  std::vector<ShapeWeight> shapes;
  std::size_t buckets = 3;
};
std::optional<DistributionRequest> distribution_request(const SearchWords& words);

// time, and 20 seconds, where the words do not say. InputError: an unknown objective, two equal
// ones, a budget that is no time, no pair of operators, a scenario at fidelity roofline.
SearchOptions search_options(const Selection& selection,
                             const std::optional<std::string>& scenario_path,
                             const SearchWords& words);

}  // namespace fuseline
