// One call of a block for a distribution: at one size, or of sequences that differ. Of the latter
// everything but attention runs once, for the new tokens of all, and attention once for each group
// of equal sequences (sim/block/mixed_batch.h).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sim/search/distribution_file.h"
#include "sim/search/plan_choices.h"

namespace fuseline {

Workload workload_at(const Workload& work, const ShapeWeight& shape);
// InputError: a size that the model or the phase does not allow.
void check_shape(const ShapeWeight& shape, const PredictionCase& c);

class CallBlock {
 public:
  // `page`: tokens of a cache's page. Case and options must outlive it.
  CallBlock(const PredictionCase& c, const ShapeWeight& shape, const SearchOptions& options,
            std::optional<std::int64_t> page);

  // What is searched: the size, or the new tokens of all sequences.
  [[nodiscard]] const Graph& block() const { return rows_.block(); }
  [[nodiscard]] const Workload& workload() const { return rows_.workload(); }
  // Choices that are not legal, or whose attention has no kernel of its own where sequences differ,
  // count as kFallbackPolicy's.
  Seconds time(const PlanChoices& choices);
  std::vector<std::string> kernels(const PlanChoices& choices);

 private:
  std::optional<Seconds> mixed_time(const PlanChoices& choices);

  SizedBlock rows_;
  std::vector<std::unique_ptr<SizedBlock>> groups_;  // empty: one size
  Seconds tables_;
};

}  // namespace fuseline
