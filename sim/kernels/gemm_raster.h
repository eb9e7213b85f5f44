// How many tiles of a product our own mainloop sweeps together (cuda/kernels/raster.cuh): as many
// as let the waves of thread blocks find in L2 most of what waves before them have read, and let
// neighbours ask for the same lines at the same time.
#pragma once

#include <cstdint>

#include "base/units.h"
#include "model/gemm_tile.h"

namespace fuseline {

struct Gpu;
struct GemmProblem;

// A product's clusters of tiles in the two directions of the raster: groups of clusters across,
// each of which is swept along.
struct RasterTiles {
  std::int64_t across = 1, along = 1;  // clusters
  std::int64_t at_once = 1;            // that run at the same time: a wave
  std::int64_t blocks = 1;             // thread blocks of a cluster
  Bytes panel_across, panel_along;     // of an operand, over all of K, that they need
  Bytes stored;                        // by a cluster
};

// Of a product of m rows and n columns whose operands have these bytes in a row, all of K: clusters
// are along M, or if turned along N, and so are the groups.
RasterTiles raster_tiles(const GemmTile& tile, std::int64_t m, std::int64_t n, Bytes row_of_a,
                         Bytes row_of_b, std::int64_t at_once);

// Of what clusters ask L2 for in groups of so many clusters across, the share that reaches it.
// Thread blocks that follow each other want the same panels at the same time, and L2 answers most
// of them once. 1: nothing is answered together.
double reaching_share(const RasterTiles& tiles, std::int64_t group);

// The clusters across of one group with which all waves together wait least for HBM and L2.
std::int64_t fastest_group(const RasterTiles& tiles, Bytes l2);

// Where a measurement says so in the place of a number: the group with which all waves together
// read least from HBM, as our own mainloop had it for a day.
inline constexpr std::int64_t kLeastReadGroup = 0;

// The same in tiles, for schedule_gemm: of the GPU's launch of a product by our own mainloop, or
// the vendor's number.
std::int64_t raster_group_of(const GemmProblem& problem, const GemmTile& tile, const Gpu& gpu);

}  // namespace fuseline
