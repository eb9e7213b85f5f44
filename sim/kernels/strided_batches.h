// How a vendor's library is called for a batch of products: as batches whose matrices lie at equal
// distances.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

namespace fuseline {

// Products first, first + step, ... of a batch, whose operands each lie at equal distances.
struct StridedBatch {
  std::int64_t first = 0, step = 1, count = 1;
};
// Element offsets of a, b and out of one product of the batch.
using BatchOffsets = std::array<std::int64_t, 3>;
// The fewest such batches, all with the same step, that hold every product once.
std::vector<StridedBatch> strided_batches(std::span<const BatchOffsets> offsets);

}  // namespace fuseline
