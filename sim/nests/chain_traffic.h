// The least traffic of two products in one kernel, the second of what the first makes.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/nests/product_traffic.h"

namespace fuseline {

// h[m, f] = a[m, k] b[f, k]^T and y[m, n] = g(h)[m, f'] c[n, f']^T, `count` times with other
// matrices. g(h) never leaves the chip. `narrowed`: columns of h for one of g(h): 2 of SwiGLU.
// `share`: of all pairs (m, f) those that are computed: keys that a causal mask shows. `other`: as
// of a product, the stores of y included.
struct ChainShape {
  std::int64_t m = 0, f = 0, k = 0, n = 0;
  std::int64_t count = 1;
  std::int64_t narrowed = 1;
  double share = 1;
  double a_bytes = 2, b_bytes = 2, h_bytes = 2, c_bytes = 2, y_bytes = 2;
  Bytes other{};

  [[nodiscard]] double moved_once() const;  // of a, b and c, all products
};

// The bounds of both products, without what may be free: elements of h are made on the chip, and so
// are those of g(h). What is moved of a and b passes while the second product moves c and y, so the
// two add up.
Bytes least_traffic(const ChainShape& chain, Bytes capacity);

// Tilings of the chain: loops over tiles of m and f outside, in either order; inside them the first
// product over tiles of k, then the second over tiles of n. A tile of h stays from the one to the
// other.
std::vector<TiledTraffic> tiled_traffic(const ChainShape& chain);

}  // namespace fuseline
