// Where the matrices of a batch lie in an operand that holds them all.
#pragma once

#include <cstdint>

#include "base/error.h"
#include "model/primitives/tile_context.h"

namespace fuseline {

// The corner of matrix `index` of a batch of matrices of [height, width]: stacked by rows, or side
// by side, where several may share one (grouped queries).
inline Corner corner_of(const Operand& operand, std::int64_t batch, std::int64_t index,
                        std::int64_t height, std::int64_t width) {
  const std::int64_t stacked = operand.rows / height;
  const std::int64_t beside = operand.cols / width;
  FUSELINE_ASSERT(stacked >= 1 && beside >= 1 && batch % stacked == 0,
                  "an operand does not hold its batch");
  const std::int64_t share = batch / stacked;  // matrices of the batch in one stack entry's rows
  return {index / share * height, index % share * beside / share * width};
}

}  // namespace fuseline
