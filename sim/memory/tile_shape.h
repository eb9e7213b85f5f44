// The tiles in which programs without a tile of their own choice run.
#pragma once

#include <cstdint>

#include "model/program.h"

namespace fuseline {

// Edges of the tile of the index space that one thread block owns.
struct TileShape {
  std::int64_t m = 128;
  std::int64_t n = 128;
};

// Tile of programs without a tensor-core mainloop: stream kernels 16 × 256, fewer columns where 256
// would cut pairs of columns, all rows where columns are summed, 64 where gathered rows are; row
// kernels 1 × all columns. For GEMM and attention programs 128 × 128.
TileShape default_tile(const Program& program);

}  // namespace fuseline
