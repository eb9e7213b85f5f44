// Which output tiles run at the same time: the raster order of a persistent GEMM.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/kernels/gemm_problem.h"

namespace fuseline {

// What one cluster of thread blocks computes in one go: an output range, clipped to the problem,
// over a range of k. In elements, half-open.
struct GemmUnit {
  std::int64_t batch = 0;  // or the group of rows
  std::int64_t m_begin = 0, m_end = 0;
  std::int64_t n_begin = 0, n_end = 0;
  std::int64_t k_begin = 0, k_end = 0;
  // Of a group: its first row, and the row tiles of the groups before it.
  std::int64_t group_row = 0, group_tile = 0;

  // Which of all groups' row tiles begins at `row`.
  [[nodiscard]] std::int64_t row_tile(std::int64_t row, std::int64_t tile_m) const {
    return group_tile + (row - group_row) / tile_m;
  }
};

// Units [begin, end) that run at the same time.
struct UnitRange {
  std::int64_t begin = 0, end = 0;
};

struct GemmSchedule {
  std::vector<GemmUnit> units;      // in the order in which clusters take them
  std::int64_t units_per_wave = 1;  // clusters on the GPU at once
  // Where a wave ends early: at the end of a launch, of a batch that takes several, and behind the
  // parts of tiles that are shared. Empty: nowhere.
  std::vector<std::int64_t> breaks{};
  [[nodiscard]] std::vector<UnitRange> waves() const;
};

// Cluster rows of tiles, or columns if turned, that our own mainloop sweeps together where nothing
// else is better (gemm_raster.h).
inline constexpr std::int64_t kOwnRasterClusters = 8;

// Rows of the M operand that our own mainloop loads for a tile of `tile_m` rows of an M-row matrix:
// of tiles of 64, no more than the power of two that has all. Of groups of rows, with `m` their
// mean: rows of one box, of which a tile takes as many as its group needs.
std::int64_t own_loaded_rows(std::int64_t tile_m, std::int64_t m);

// Of the rows that our own mainloop asks for the ones that the matrix does not have, in the last of
// the tiles that `rows` rows from a tile's begin take. 0 for turned tiles and those of 64 rows,
// whose times are described better without, for the library's, and where the next group of rows
// lies behind.
std::int64_t absent_rows(const GemmProblem& problem, const GemmTile& tile, std::int64_t rows);

// Tiles of a group for schedule_gemm: the vendor's (`library_tiles`), or kOwnRasterClusters.
std::int64_t raster_group(bool library, const GemmTile& tile, double library_tiles);

// Units in groups of `group_tiles` tiles across the cluster's longer direction (M for cluster_m ≥
// cluster_n), walking the other direction, which reverses from group to group so that the last
// operand panels of one group are the first of the next. Every output element × k lies in exactly
// one unit. `blocks_at_once`: thread blocks resident on the GPU together. With tail_parts > 1 the
// tiles that would be alone in a last wave come first, cut along K: the first parts of all of them,
// then the second parts (cuda/kernels/sm90/tile_walk.cuh takes them in the same order).
GemmSchedule schedule_gemm(std::int64_t m, std::int64_t n, std::int64_t k, std::int64_t batch,
                           const GemmTile& tile, std::int64_t blocks_at_once,
                           std::int64_t group_tiles);

// The same for groups of rows, one after the other, none of which shares a tile with another.
GemmSchedule schedule_groups(const std::vector<std::int64_t>& groups, std::int64_t n,
                             std::int64_t k, const GemmTile& tile, std::int64_t blocks_at_once,
                             std::int64_t group_tiles);

// The same for a batch in several launches.
GemmSchedule schedule_calls(const std::vector<StridedBatch>& calls, std::int64_t m, std::int64_t n,
                            std::int64_t k, const GemmTile& tile, std::int64_t blocks_at_once,
                            std::int64_t group_tiles);

// The same for products of a batch that sum depths[g] elements of k each, one part behind the
// other. Tiles of a product without any have k_begin = k_end.
GemmSchedule schedule_depths(const std::vector<std::int64_t>& depths, std::int64_t m,
                             std::int64_t n, const GemmTile& tile, std::int64_t blocks_at_once,
                             std::int64_t group_tiles);

}  // namespace fuseline
