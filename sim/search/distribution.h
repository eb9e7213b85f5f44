// Shapes that vary: one plan for all of them, a few, or one for each; with what compiling them and
// padding to their sizes costs.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/draw/svg.h"
#include "sim/search/call_sizes.h"
#include "sim/search/search.h"
#include "sim/search/size_ranges.h"

namespace fuseline {

struct DistributionOptions {
  std::size_t buckets = 3;
  // Of one kernel. NVRTC takes about 0.9 s for a kernel of ours: an assumption about the machine.
  Seconds compile{0.9};
  // Calls that share the time of compiling. Empty: those that the distribution counted, or 100,000.
  std::optional<double> calls{};
  std::int64_t cached = 64;  // plans that a cache holds, where each size is compiled for itself
  // Tokens of a page, where caches are in pages: of calls whose sequences differ.
  std::optional<std::int64_t> page{};
};

// A plan's choices, rewrites and kernels by the names of operators, are made anew at every size.
struct ShapeResult {
  ShapeWeight shape;
  bool complete = false;    // its own plan is the best of the space
  Seconds own{};            // with the plan that was found for it
  Seconds shared{};         // with the one set of choices for all
  std::size_t choices = 0;  // of the buckets: which shape's serve it
  Seconds bucketed{};
  Seconds padded{};    // at the size of its bucket of those that pad
  Seconds fallback{};  // of kFallbackPolicy, at its own size
};

// Neighbouring sizes that one plan serves.
struct Bucket {
  ShapeRange shapes{};
  std::size_t choices = 0;  // whose
  ShapeWeight size{};       // what its calls are padded to, with the weight of its calls
  Seconds time{};           // mean
  double slower = 0;        // share of its calls that the fallback would run faster, unpadded
};

// One way to serve all calls.
struct Serving {
  std::string way;  // "one-plan"
  std::int64_t plans = 0;
  double kernels = 0;   // that are compiled
  Seconds block{};      // mean of a block
  Seconds compile{};    // of all kernels
  Seconds call{};       // mean of a call of all layers, with its share of compiling
  double fallback = 0;  // share of calls that the fallback serves
  std::optional<double> earned_after{};  // calls from which on it is ahead of the fallback
};

struct DistributionResult {
  CallSizes sizes;
  double calls = 0;
  bool calls_assumed = false;
  DistributionOptions options;
  std::vector<ShapeResult> shapes;
  std::size_t for_all = 0;  // the shape whose choices serve all best
  std::vector<Bucket> buckets, padded;
  std::size_t different = 0;  // sets of choices among the plans of all shapes
  Seconds each, bucketed, one, padded_mean, fallback;  // weighted means
  std::vector<Seconds> by_buckets, by_padded;          // means with at most 1, 2, ... buckets
  std::vector<Serving> servings;
  // The share of calls with which falling back takes away what a plan for each size gains over one
  // plan for all, and over the buckets that pad; empty: it gains nothing, or nothing takes it away.
  std::optional<double> fallback_negates_one, fallback_negates_padded;
  bool stopped = false;
};

// `options.budget_seconds` is for all shapes together; the objective is time. Buckets are ranges of
// the ordered sizes, the best ones for this many (size_ranges.h). Those that pad run every call at
// the largest batch, tokens and context of their range; where the sequences of a call differ, each
// group at the largest of its place. InputError: a size that the model or the
// phase does not allow.
DistributionResult search_distribution(const PredictionCase& c, const CallSizes& sizes,
                                       const DistributionOptions& how,
                                       const SearchOptions& options);

std::string distribution_json(const PredictionCase& c, const Distribution& of,
                              const DistributionResult& result);

// The mean time of a call over the number of buckets, with padding and without.
Svg draw_distribution(const PredictionCase& c, const DistributionResult& result);

}  // namespace fuseline
