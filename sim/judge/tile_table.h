// Tables of measured tiles: the time of every tile at some sizes, as fuseline gemm --measure
// --tiles writes them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/units.h"
#include "model/gemm_tile.h"
#include "sim/gpu/gpu.h"
#include "sim/kernels/gemm_problem.h"

namespace fuseline {

// One row: a tile of our own mainloop at one size.
struct MeasuredTileTime {
  std::int64_t m = 0, n = 0, k = 0;
  std::string name;       // of the tile in the table
  GemmTile tile;          // of the menu, with the number of parts that ran
  Seconds time;           // measured
  Seconds estimate;       // that chose among tiles when it was measured
  Seconds library;        // the vendor's best at this size
  bool in_turns = false;  // measured in turns with the library; otherwise looked at once
};

// What such a row multiplies: a product by our own mainloop that only stores its result.
GemmProblem own_plain_gemm(std::int64_t m, std::int64_t n, std::int64_t k);

// Rows of bf16, in the file's order. Names are looked up in the GPU's menu. They tell how many
// thread blocks a cluster has, and not what these share: of tiles with one name at one size the
// estimates tell which is which. InputError: not such a table, a name that no tile has.
std::vector<MeasuredTileTime> read_tile_table(const std::string& path, const Gpu& gpu);

}  // namespace fuseline
