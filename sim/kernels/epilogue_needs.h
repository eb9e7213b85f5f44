// What a GEMM program's epilogue needs of the tiles of our own mainloop (cuda/kernels/README.md has
// the contract). With it the simulator chooses only tiles that the kernels have.
#pragma once

#include <cstdint>

#include "model/gemm_tile.h"
#include "model/program.h"
#include "model/target.h"

namespace fuseline {

struct EpilogueNeeds {
  bool reduces_columns = false;  // sums down columns: wants tiles of 128 rows, 16 a warp
  // Whoever reads these sums adds them all up, so that each may be of any rows. Then turned tiles
  // of 128 rows and more have them too.
  bool sums_of_any_rows = false;
  int column_sums = 0;                // down columns; two of a value twice as wide as the product
  std::int64_t row_partial_cols = 0;  // the width of a tile is a multiple of so many columns
  bool whole_partials = false;        // one warp must have all columns of a partial
  int row_sums = 0;                   // along rows: numbers of each row and 128 columns
  // One primitive leaves all of those, of values as wide as the product.
  bool row_sums_of_product = true;
  bool accumulates = false;       // adds to what a tensor holds: no element may come twice
  std::int64_t column_group = 1;  // and of so many, which must lie in one tile
  // Groups of 8 accumulator columns that the body sees at once: 8, or 4 where whole values of 64
  // columns would not fit the registers beside the accumulators.
  int slab_groups = 8;
  // The most registers that a thread's tile values take at one time, the accumulators left out.
  int live_registers = 0;
  // Those that they would take in a slab of 8 groups, where slab_groups is less and some tiles have
  // room for it; else 0.
  int wide_registers = 0;
  // What a slab loads: boxes of tile rows x 64 columns, and vectors.
  int tile_loads = 0, col_loads = 0;
  // Rows of the operand or of a result lie apart in runs: tiles begin at multiples of 64 rows.
  bool rows_in_runs = false;
  bool loads_tables = false;  // RoPE's
  // Of a turned tile: registers of the tables whose loads begin before the sums have turned, and
  // whether there are others, which make it wait.
  int table_registers = 0;
  bool late_tables = false;
  double instructions = 0;   // of its functions, for each element of the product
  bool only_stores = false;  // stores the whole product unchanged, in 16 bits
};

// InternalError: the program is no GEMM's. `graph`, which the program's tensors are of, says who
// reads what it leaves, and of which type tables are; without it sums_of_any_rows is false, and all
// tables are late.
EpilogueNeeds epilogue_needs(const Program& program, const Graph& graph);
EpilogueNeeds epilogue_needs(const Program& program);

// Groups of columns that the Hopper mainloop's epilogue sees at once in that tile: 8 also where
// slab_groups is less, if nothing spills. Every slab has latencies of its own: 24 stores and 18
// sums down columns in a tile of 160 x 128 took 9.0 us on an H100 in narrow slabs and 6.4 us in
// wide ones.
int slab_groups_of(const EpilogueNeeds& needs, const GemmTile& tile);

// Bytes of shared memory that a turned tile's sums down columns take.
std::int64_t column_scratch(const EpilogueNeeds& needs);

// Whether our own mainloop has the tile for the epilogue. `bulk_copies`: they fill the tile on that
// GPU; otherwise threads do.
bool epilogue_has_tile(const EpilogueNeeds& needs, const GemmTile& tile, bool bulk_copies,
                       std::int64_t shared_bytes);

// Whether the Hopper mainloop can give this tile to such an epilogue: registers, room for what a
// slab loads, whole partials. `shared_bytes`: that one thread block may have.
bool fits(const EpilogueNeeds& needs, const GemmTile& tile,
          std::int64_t shared_bytes = Target{}.shared_bytes_per_block);

}  // namespace fuseline
