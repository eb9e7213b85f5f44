// The least traffic of a product for a capacity of the memory that is near: what no schedule can
// pass, and what the best tiling and order reach.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/units.h"
#include "sim/nests/loop_nest.h"

namespace fuseline {

// c[m, n] = a[m, k] b[n, k]^T, `count` times with other matrices. Bytes of an element of each;
// `other`: bytes of the same kernel that do not depend on its schedule: what the epilogue loads and
// stores, scales; they include the stores of c if there are any.
struct ProductShape {
  std::int64_t m = 0, n = 0, k = 0;
  std::int64_t count = 1;
  double a_bytes = 2, b_bytes = 2, c_bytes = 2;
  Bytes other{};
  std::int64_t n_unit = 1;  // columns of c that lie in one tile: pairs, heads

  [[nodiscard]] double a_total() const;  // of one product
  [[nodiscard]] double b_total() const;
  [[nodiscard]] double c_total() const;
};

// The most multiplications that touch elements of a, b and c of `bytes` together: boxes p × q × r
// are the best sets (Loomis and Whitney), no edge longer than the product's.
double most_multiplications(const ProductShape& shape, double bytes);

// Bytes that one product moves in at least, with the elements of c counted as moved in once,
// whatever the order and the tiles, when the near memory holds `capacity` bytes; or when `memories`
// of them share the work and what each moves in counts. Any run of the product is parted where X
// bytes have been moved in. In such a part no more than capacity + X bytes can be touched, so there
// are at least V/G(capacity + X) parts, and all but the last of each memory moved X bytes. After
// Smith, Lowery, Langou and van de Geijn, arXiv 1702.02017, with edges that end and bytes in the
// place of words.
double moved_in(const ProductShape& shape, double capacity, std::int64_t memories = 1);

// Bytes that pass between the two memories at least: moved_in() without c, whose elements begin in
// the near memory, or each matrix once if that is more; and the rest.
Bytes least_traffic(const ProductShape& shape, Bytes capacity);

// A tiling with its order: the near memory that it takes, and what it moves.
struct TiledTraffic {
  Bytes capacity;
  Bytes moved;
  TileOrder tiles{};
};

// The tilings that no other one beats in both, by rising capacity. Loops over tiles run in any
// order; each matrix keeps what it has of a tile, or of more over the loops inside a loop. Sums
// that leave before they are complete go in fp32 and come back. Edges: all of them where a loop has
// at most 32 iterations; else powers of two and equal parts. The idea of such curves is that of
// Orojenesis (Huang et al., ISCA 2024).
std::vector<TiledTraffic> tiled_traffic(const ProductShape& shape);

// The best of the curve that fits. Empty: nothing does.
std::optional<TiledTraffic> best_within(const std::vector<TiledTraffic>& curve, Bytes capacity);

// Edges that are tried of a loop of that size, all of whole units where the size is.
std::vector<std::int64_t> tile_edges(std::int64_t size, std::size_t about, std::int64_t unit = 1);

}  // namespace fuseline
