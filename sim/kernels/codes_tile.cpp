#include "sim/kernels/codes_tile.h"

#include <algorithm>

#include "base/error.h"
#include "model/formats/weight_format.h"
#include "sim/kernels/codes_columns.h"

namespace fuseline {

namespace {

constexpr std::int64_t kMostRows = 64;
constexpr std::int64_t kLeastDepth = 512;      // of K that a thread block sums
constexpr std::int64_t kMostBlocksOfTile = 8;  // a cluster of this size runs on every GPU with any
constexpr std::int64_t kLoadBits = 128;        // of a lane
constexpr std::int64_t kLanesOfRow = 4;        // whose loads lie side by side

// Thread blocks of the lowest tile whose registers a multiprocessor has (84 a thread with three).
// Groups of rows, zero points, several scales of a load, scales within rows of the larger codes,
// and of the smaller ones codes that are multiplied by their scales one by one need more than that:
// with three the compiler spills 4 to 290 bytes. Where such scales are powers of two it does not.
std::int64_t resident_of_lowest(const std::vector<std::int64_t>& groups,
                                const StoredWeight& weight) {
  const std::int64_t bits = size_of(weight.element()).bits();
  const bool one_by_one = weight.format->power_of_two && weight.group * bits >= kLoadBits;
  const bool fit = weight.group == 0 || (bits < 8 && (weight.scales_sums() || one_by_one));
  return groups.empty() && fit && !weight.format->zero_points ? 3 : 2;
}

}  // namespace

std::int64_t codes_chunk(std::int64_t bits) { return kLanesOfRow * kLoadBits / bits; }

std::int64_t most_row_tiles(std::int64_t rows, std::int64_t groups, std::int64_t tile_m) {
  // Every group with rows has a tile that it may fill with one row; all others are full.
  const std::int64_t used = std::min(rows, groups);
  return used == 0 ? 0 : (rows - used) / tile_m + used;
}

bool has_codes_tile(const GemmProblem& problem, const Gpu& gpu) {
  if (problem.library || !problem.weight.quantised()) return false;
  if (!has_feature(gpu, Feature::mma_sync)) return false;
  if (problem.a.transposed || problem.b.transposed || problem.batch > 1 || !problem.depths.empty())
    return false;
  if (problem.weight.group % kCodesTogether != 0) return false;
  if (problem.k % 2 != 0 && size_of(problem.weight.element()).bits() < 8) return false;
  return !problem.needs.reduces_columns && !problem.needs.rows_in_runs &&
         problem.needs.row_partial_cols <= kCodesColumns &&
         kCodesColumns % problem.needs.column_group == 0;
}

bool multiplies_codes(const StoredWeight& weight, const StoredWeight& activation) {
  return weight.quantised() && activation.quantised() && weight.element() == Dtype::e4m3 &&
         activation.element() == Dtype::e4m3 && !weight.scaled_within_rows() &&
         !activation.scaled_within_rows() && !weight.format->zero_points;
}

bool has_tile_of_codes(const GemmProblem& problem, const Gpu& gpu) {
  return !problem.library && has_feature(gpu, Feature::wgmma) &&
         has_feature(gpu, Feature::bulk_copy) &&
         multiplies_codes(problem.weight, problem.activation) && problem.groups.empty() &&
         problem.depths.empty() && problem.batch == 1 && !problem.a.transposed &&
         !problem.b.transposed && !problem.needs.rows_in_runs;
}

GemmTile tile_of_codes(const GemmTile& tile) {
  GemmTile of_codes = tile;
  of_codes.k = 2 * tile.k;
  return of_codes;
}

GemmTile codes_tile(std::int64_t m, std::int64_t n, std::int64_t k,
                    const std::vector<std::int64_t>& groups, const StoredWeight& weight,
                    bool clusters) {
  FUSELINE_ASSERT(m > 0 && n > 0 && k > 0 && weight.quantised(), "no product of codes");
  const std::int64_t rows = groups.empty() ? m : *std::ranges::max_element(groups);
  GemmTile tile{.m = kCodesLowestTile,
                .n = kCodesColumns,
                .k = codes_chunk(size_of(weight.element()).bits()),
                .stages = 2};
  tile.dequantises = true;
  while (tile.m < kMostRows && tile.m < rows) tile.m *= 2;
  const std::int64_t below =
      groups.empty() ? ceil_div(m, tile.m) : most_row_tiles(m, std::ssize(groups), tile.m);
  const std::int64_t tiles = below * ceil_div(n, kCodesColumns);
  // Registers of so many thread blocks fit (cuda/kernels/gemm_codes.cuh). Three of the lowest
  // tile's do where they share it: measured on an H100, 22,016 x 4,096 codes of 4 bits took 27.0
  // us, and 30.2 with two.
  const std::int64_t resident = tile.m == kCodesLowestTile ? resident_of_lowest(groups, weight)
                                : tile.m <= kCodesLowTile  ? 2
                                                           : 1;
  while (clusters && tile.cluster_k < kMostBlocksOfTile &&
         2 * tile.cluster_k * tiles <=
             std::max<std::int64_t>(2, resident) * kMultiprocessorsOfCodes &&
         k >= 2 * tile.cluster_k * kLeastDepth)
    tile.cluster_k *= 2;
  tile.blocks_per_sm = tile.cluster_k > 1 ? resident : std::min<std::int64_t>(2, resident);
  return tile;
}

GemmTile codes_tile(const GemmProblem& problem, const Gpu& gpu) {
  const bool hopper = has_feature(gpu, Feature::wgmma) && has_feature(gpu, Feature::bulk_copy);
  const GemmTile tile =
      codes_tile(problem.m, problem.n, problem.k, problem.groups, problem.weight, hopper);
  if (!hopper || !problem.groups.empty() || problem.activation.quantised()) return tile;
  // What a measurement names may be the tile of before.
  if (problem.ran && *problem.ran == tile.edges()) return tile;
  const auto form = codes_columns({problem.m, problem.n, problem.k, problem.weight}, problem.needs);
  return form ? tile_of(*form, problem.weight) : tile;
}

std::int64_t codes_turns(const GemmTile& tile, std::int64_t k, std::int64_t bits) {
  // Each warp takes as many chunks side by side as it has loads ahead, then the other warp does.
  const std::int64_t side_by_side = tile.m <= kCodesDeepTile ? 2 : 1;
  const std::int64_t chunks = ceil_div(ceil_div(k, codes_chunk(bits)), tile.cluster_k);
  const std::int64_t both = kCodesWarpsAlongK * side_by_side;
  return chunks / both * side_by_side + std::min(side_by_side, chunks % both);
}

}  // namespace fuseline
