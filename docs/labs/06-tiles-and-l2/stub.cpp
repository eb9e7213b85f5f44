// Lab 6, task 6.9: a GEMM in tiles.
//
//   c[i, j] = @FACTOR@ * sum over k of a[i, k] b[j, k]        a [M, K], b [N, K], c [M, N]
//
// Tiles of c are tile_m x tile_n, smaller at the edges. On chip there is room for the accumulators
// of one tile, tile_m x tile_k elements of a and tile_n x tile_k of b. Load a once for every column
// of tiles, b once for every row of tiles, and store c once. The factor is yours: other students
// have others.
#include <algorithm>
#include <cstdint>
#include <vector>

#include "fuseline_lab.h"

using fuseline_lab::Source;
using fuseline_lab::Target;

void gemm(const Source& a, const Source& b, const Target& c, std::int64_t tile_m,
          std::int64_t tile_n, std::int64_t tile_k) {
  // a.rows() is M, b.rows() is N, a.cols() is K
  (void)a, (void)b, (void)c, (void)tile_m, (void)tile_n, (void)tile_k;  // yours to write
}
