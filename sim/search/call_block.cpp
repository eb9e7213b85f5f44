#include "sim/search/call_block.h"

#include <algorithm>

#include "base/error.h"

namespace fuseline {

Workload workload_at(const Workload& work, const ShapeWeight& shape) {
  if (shape.mixed()) return workload_of_rows(work, shape.sequences);
  Workload at = work;
  at.batch = shape.batch;
  at.seq = shape.tokens;
  at.context = work.phase == Phase::decode ? shape.context : 0;
  return at;
}

void check_shape(const ShapeWeight& shape, const PredictionCase& c) {
  check_workload(workload_at(c.workload, shape), c.model);
  for (const SequenceGroup& g : shape.sequences)
    check_workload(workload_of(c.workload, g), c.model);
}

CallBlock::CallBlock(const PredictionCase& c, const ShapeWeight& shape,
                     const SearchOptions& options, std::optional<std::int64_t> page)
    : rows_(c, workload_at(c.workload, shape), options) {
  for (const SequenceGroup& g : shape.sequences)
    groups_.push_back(std::make_unique<SizedBlock>(c, workload_of(c.workload, g), options));
  if (page && shape.mixed()) tables_ = page_tables(shape.sequences, *page, c.gpu).time;
}

std::optional<Seconds> CallBlock::mixed_time(const PlanChoices& choices) {
  const auto of_rows = rows_.parts(choices);
  if (!of_rows) return std::nullopt;
  Seconds sum = of_rows->others + tables_;
  for (const auto& group : groups_) {
    const auto parts = group->parts(choices);
    if (!parts) return std::nullopt;
    sum += parts->attention;
  }
  return sum;
}

Seconds CallBlock::time(const PlanChoices& choices) {
  if (groups_.empty()) return rows_.time(choices);
  if (const auto time = mixed_time(choices)) return *time;
  const auto plain = mixed_time(fallback_choices());
  FUSELINE_ASSERT(plain.has_value(), "attention of the fallback is a kernel of its own");
  return *plain;
}

std::vector<std::string> CallBlock::kernels(const PlanChoices& choices) {
  return rows_.kernels(choices);
}

}  // namespace fuseline
