#include "sim/kernels/strided_batches.h"

#include <utility>

namespace fuseline {

namespace {

BatchOffsets operator-(const BatchOffsets& a, const BatchOffsets& b) {
  return {a[0] - b[0], a[1] - b[1], a[2] - b[2]};
}

// Greedily: as long a batch as goes from each product on.
std::vector<StridedBatch> with_step(std::span<const BatchOffsets> offsets, std::int64_t step) {
  const std::int64_t count = std::ssize(offsets);
  const auto at = [&](std::int64_t i) { return offsets[static_cast<std::size_t>(i)]; };
  std::vector<StridedBatch> batches;
  for (std::int64_t start = 0; start < step; ++start) {
    for (std::int64_t first = start; first < count;) {
      StridedBatch batch{first, step, 1};
      std::int64_t next = first + step;
      while (next < count && at(next) - at(next - step) == at(first + step) - at(first)) {
        ++batch.count;
        next += step;
      }
      batches.push_back(batch);
      first = next;
    }
  }
  return batches;
}

}  // namespace

std::vector<StridedBatch> strided_batches(std::span<const BatchOffsets> offsets) {
  std::vector<StridedBatch> best;
  const std::int64_t count = std::ssize(offsets);
  for (std::int64_t step = 1; step <= count; ++step) {
    if (count % step != 0) continue;
    std::vector<StridedBatch> batches = with_step(offsets, step);
    if (best.empty() || batches.size() < best.size()) best = std::move(batches);
  }
  return best;
}

}  // namespace fuseline
