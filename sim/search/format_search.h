// The best plan among number formats of the weights, where the executor says which formats are
// close enough.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/executor/parallel.h"
#include "sim/search/search.h"

namespace fuseline {

// The best plan in one format of the weights.
struct FormatPlan {
  std::string format;  // "int4:128"; the plain type by its name
  double error = 0;    // of the worst output: ‖got - want‖₂ / ‖want‖₂
  std::string worst;   // that output
  bool within = false;
  SearchResult found;
};

struct FormatSearch {
  double budget = 0;                // the largest error that is allowed
  Workload checked{};               // the sizes at which plans were executed
  std::vector<FormatPlan> plans;    // in the order of the cases
  std::optional<std::size_t> best;  // of those within the budget; empty: none is
};

struct FormatOptions {
  double budget = 0;
  std::uint64_t seed = 1;
  executor::Workers workers{};
};

// `cases`: the same block in several formats. The kernels of each found plan are executed on the
// CPU, at fewer tokens, with random weights rounded to the format; what the block gives is compared
// with fp64 of the weights before they were rounded. InputError: as search_block; sizes that do
// not fit into memory.
FormatSearch search_formats(const std::vector<PredictionCase>& cases, const SearchOptions& options,
                            const FormatOptions& formats);

// At most 64 new rows and 256 tokens of context: errors of formats hardly depend on these sizes.
Workload format_check_sizes(const Workload& workload);

}  // namespace fuseline
