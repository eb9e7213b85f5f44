// Shapes that vary: one plan for all of them, a few, or one for each.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/search/search.h"

namespace fuseline {

// How often a block runs at a size. Weights count relative to each other.
struct ShapeWeight {
  std::int64_t batch = 1, tokens = 1, context = 0;
  double weight = 1;
};

// A CSV with the columns batch, tokens, context (0 but in decode) and weight. InputError: a missing
// column, a size that is none, a shape twice, weights that are all 0, more shapes than a search can
// take.
std::vector<ShapeWeight> read_distribution(const std::string& path);

// A plan's choices, rewrites and kernels by the names of operators, are made anew at every size.
struct ShapeResult {
  ShapeWeight shape;
  bool complete = false;    // its own plan is the best of the space
  Seconds own{};            // with the plan that was found for it
  Seconds shared{};         // with the one set of choices for all
  std::size_t choices = 0;  // of the buckets: which shape's serve it
  Seconds bucketed{};
};

struct DistributionResult {
  std::vector<ShapeResult> shapes;
  std::size_t for_all = 0;           // the shape whose choices serve all best
  std::vector<std::size_t> buckets;  // the shapes whose choices are kept
  std::size_t different = 0;         // sets of choices among the plans of all shapes
  Seconds each, bucketed, one;       // weighted means
  bool stopped = false;
};

// `options.budget_seconds` is for all shapes together; the objective is time. At most `buckets`
// sets of choices are kept, chosen so that the weighted mean is least: from the one for all, a
// further one at a time, then exchanged while that gains. Choices that are not legal at a size take
// the time of policy per-operator there. InputError: a size that the model or the phase does not
// allow.
DistributionResult search_distribution(const PredictionCase& c,
                                       const std::vector<ShapeWeight>& shapes, std::size_t buckets,
                                       const SearchOptions& options);

std::string distribution_json(const PredictionCase& c, const DistributionResult& result);

}  // namespace fuseline
