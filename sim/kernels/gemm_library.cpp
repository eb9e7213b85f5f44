#include "sim/kernels/gemm_library.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <optional>
#include <tuple>

#include "base/error.h"
#include "sim/kernels/codes_tile.h"
#include "sim/kernels/gemm_time.h"
#include "sim/kernels/operand_rows.h"
#include "sim/kernels/own_mainloop.h"
#include "sim/kernels/tail_parts.h"

namespace fuseline {
namespace {

constexpr std::int64_t kTailPlaces = 2;      // for sums of parts, for each cluster of the GPU
constexpr std::int64_t kOneAddersParts = 8;  // that one thread block adds up, at most

// A part of K of few steps is all pipeline fill, and more clusters than run at once are no gain:
// their blocks make one tile each.
bool worth_splitting(const GemmProblem& problem, const GemmTile& tile, const Gpu& gpu) {
  const std::int64_t tiles = ceil_div(problem.m, tile.m) * ceil_div(problem.n, tile.n);
  return problem.products() == 1 &&
         problem.k >= tile.cluster_k * gpu.constants.gemm.least_split_steps * tile.k &&
         tiles * tile.cluster_k <= blocks_at_once(tile, gpu);
}

// Tiles, or clusters of them.
std::int64_t units_of(const GemmProblem& problem, const GemmTile& tile) {
  return ceil_div(problem.m, tile.m * tile.cluster_m) *
         ceil_div(problem.n, tile.n * tile.cluster_n);
}

// Numbers of parts to try: few, and the most that fill one round or two of all clusters.
std::vector<std::int64_t> parts_to_try(const GemmProblem& problem, const GemmTile& tile,
                                       const Gpu& gpu) {
  const std::int64_t most = most_tail_parts(problem, tile, gpu);
  std::vector<std::int64_t> parts;
  for (std::int64_t p = std::min(most, kOneAddersParts); p > 1; --p) parts.push_back(p);
  if (most <= kOneAddersParts) return parts;
  const std::int64_t clusters = blocks_at_once(tile, gpu) / tile.cluster();
  const std::int64_t rest = units_of(problem, tile) % clusters;
  for (const std::int64_t rounds : {1, 2})
    if (const std::int64_t p = std::min(most, rounds * clusters / rest); p > kOneAddersParts)
      parts.push_back(p);
  return parts;
}

// Up to some rows stay in one tile, the narrowest that covers them, and the next few in at most
// two: tiles side by side along M load the weights twice, a wider one only adds padding. Such tiles
// are whole warp groups wide.
class LibraryHabits {
 public:
  LibraryHabits(const GemmProblem& problem, const Gpu& gpu)
      : problem_(problem), constants_(gpu.constants.gemm) {
    for (const GemmTile& tile : gpu.architecture->tiles.library) {
      if (tile.m >= problem.typical_rows()) cover_ = std::min(cover_, tile.m);
    }
  }
  [[nodiscard]] bool skips(const GemmTile& tile) const {
    const bool thin = problem_.typical_rows() <= constants_.thin_rows;
    return tile.m > cover_ || tile.m < std::min(cover_, constants_.least_tile_rows) ||
           (thin && tile.n % constants_.thin_columns != 0 && problem_.n > tile.n);
  }

 private:
  const GemmProblem& problem_;
  const GemmConstants& constants_;
  std::int64_t cover_ = std::numeric_limits<std::int64_t>::max();
};

// A turned tile takes the activations as they lie in memory, of one product.
bool turns(const GemmProblem& problem, const Gpu& gpu) {
  return problem.products() == 1 && problem.groups.empty() && problem.depths.empty() &&
         !problem.a.transposed && (!problem.weight.quantised() || has_tile_of_codes(problem, gpu));
}

// Clusters of four leave some SMs without work, and save requests to L2 alone. That pays where a
// row takes two of them, and nowhere else: of 52 sizes, half of them with rows that begin at lines,
// they were predicted ahead by 1 % at most where rows do.
bool too_large_a_cluster(const GemmProblem& problem, const GemmTile& tile, const Gpu& gpu) {
  return std::max(tile.cluster_m, tile.cluster_n) > 2 &&
         (!turns(problem, gpu) || problem.b.transposed || crossing_rows(problem, tile, gpu) == 0);
}

// Of products that sum parts of unlike depths, two warpgroups clear the rows that are another
// product's: Hopper's kernel has tiles of 128 rows only. Thread blocks of a cluster sit below each
// other in one product; products of groups of rows may have too few rows for that.
bool runs_unlike_products(const GemmProblem& problem, const GemmTile& tile, const Gpu& gpu) {
  if (!has_feature(gpu, Feature::bulk_copy)) return true;
  if (!problem.groups.empty()) return tile.cluster() == 1;
  return problem.depths.empty() || (tile.m == 128 && tile.cluster() == tile.cluster_m);
}

// Our own mainloop has no code for the others, or nothing to gain from them.
bool own_mainloop_skips(const GemmProblem& problem, const GemmTile& tile, const Gpu& gpu) {
  if (tile.dequantises) return false;
  return !epilogue_has_tile(problem.needs, tile, has_feature(gpu, Feature::bulk_copy),
                            gpu.smem_per_block_max.value()) ||
         !runs_unlike_products(problem, tile, gpu) ||
         (tile.cluster_m > 1 && problem.typical_rows() <= tile.m * (tile.cluster_m - 1)) ||
         (tile.turned() && (problem.n <= tile.n * (tile.cluster_n - 1) || !turns(problem, gpu))) ||
         too_large_a_cluster(problem, tile, gpu) ||
         (tile.cluster_k > 1 && !worth_splitting(problem, tile, gpu));
}

// Those with the edges that a measurement names; without any in the menu, nothing.
std::vector<GemmTile> tiles_that_ran(const std::vector<GemmTile>& menu,
                                     const std::optional<TileEdges>& ran) {
  std::vector<GemmTile> tiles;
  std::copy_if(menu.begin(), menu.end(), std::back_inserter(tiles),
               [&](const GemmTile& tile) { return ran && tile.edges() == *ran; });
  return tiles;
}

// Tiles that our own mainloops have for the product.
std::vector<GemmTile> own_tiles(const GemmProblem& problem, const Gpu& gpu) {
  std::vector<GemmTile> tiles = gpu.architecture->tiles.own;
  if (!has_tile_of_codes(problem, gpu)) return tiles;
  std::ranges::transform(tiles, tiles.begin(), tile_of_codes);
  if (has_codes_tile(problem, gpu)) tiles.push_back(codes_tile(problem, gpu));
  return tiles;
}

std::vector<GemmTile> tiles_to_try(const GemmProblem& problem, const Gpu& gpu) {
  const TileMenu& menu = gpu.architecture->tiles;
  const std::vector<GemmTile> own = own_tiles(problem, gpu);
  std::vector<GemmTile> tiles = tiles_that_ran(problem.library ? menu.library : own, problem.ran);
  // What ran may be a tile that the tool takes for no such product any more.
  std::vector<GemmTile> taken = tiles;
  std::erase_if(taken, [&](const GemmTile& tile) {
    return !problem.library && own_mainloop_skips(problem, tile, gpu);
  });
  if (!taken.empty()) return taken;
  if (!tiles.empty()) return tiles;
  if (problem.library) {
    const LibraryHabits habits(problem, gpu);
    std::copy_if(menu.library.begin(), menu.library.end(), std::back_inserter(tiles),
                 [&](const GemmTile& tile) { return !habits.skips(tile); });
    return tiles.empty() ? menu.library : tiles;
  }
  std::copy_if(own.begin(), own.end(), std::back_inserter(tiles),
               [&](const GemmTile& tile) { return !own_mainloop_skips(problem, tile, gpu); });
  if (tiles.empty()) {
    throw InputError({.file = gpu.architecture->name,
                      .field = "tiles.own",
                      .message = "holds no tile that the epilogue of a GEMM fits",
                      .allowed = "tiles of 128 rows and 128 columns among others"});
  }
  return tiles;
}

}  // namespace

// There are two places for sums for each cluster.
std::int64_t most_tail_parts(const GemmProblem& problem, const GemmTile& tile, const Gpu& gpu) {
  if (problem.library || problem.products() > 1 || !problem.groups.empty() ||
      !problem.depths.empty() ||
      (problem.weight.quantised() && (tile.dequantises || !has_tile_of_codes(problem, gpu))))
    return 1;
  // Turned tiles of codes have no code for it.
  if (tile.turned() && problem.weight.quantised()) return 1;
  const std::int64_t most =
      adds_together(problem) ? tile.tail_parts : std::min(tile.tail_parts, kOneAddersParts);
  const std::int64_t clusters = blocks_at_once(tile, gpu) / tile.cluster();
  const std::int64_t rest = units_of(problem, tile) % clusters;
  if (rest == 0) return 1;
  const std::int64_t by_steps = ceil_div(problem.k, tile.k) / gpu.constants.gemm.least_split_steps;
  return std::max<std::int64_t>(1, std::min({most, by_steps, 1 + kTailPlaces * clusters / rest}));
}

std::int64_t fastest_tail_parts(const GemmProblem& problem, GemmTile tile, const Gpu& gpu) {
  std::int64_t fastest = 1;
  Seconds least;
  for (const std::int64_t parts : parts_to_try(problem, tile, gpu)) {
    tile.tail_parts = parts;
    const Seconds time = quick_gemm_time(problem, tile, gpu);
    if (fastest > 1 && time >= least) continue;
    fastest = parts;
    least = time;
  }
  return fastest;
}

GemmTile choose_tile(const GemmProblem& problem, const Gpu& gpu) {
  // The kernel that dequantises has no other tile.
  if (has_codes_tile(problem, gpu) && !has_tile_of_codes(problem, gpu))
    return codes_tile(problem, gpu);
  if (problem.tile) return *problem.tile;
  if (gpu.chosen_for) return choose_tile(problem, *gpu.chosen_for);
  if (!problem.calls.empty()) {  // every launch chooses for itself, and all are alike
    GemmProblem one = problem;
    one.batch = problem.products_at_once();
    one.calls.clear();
    return choose_tile(one, gpu);
  }
  FUSELINE_ASSERT(gpu.architecture != nullptr, gpu.name + " has no architecture");
  const bool ragged = !problem.groups.empty() || !problem.depths.empty();
  if (problem.library && ragged) {
    const std::int64_t mean = problem.groups.empty() ? problem.m : problem.m / problem.products();
    for (const GroupedTile& grouped : gpu.architecture->tiles.grouped) {
      const bool always = grouped.most_rows == 0 && grouped.most_columns == 0;
      if (always || mean <= grouped.most_rows || problem.n <= grouped.most_columns)
        return grouped.tile;
    }
  }
  const GemmConstants& constants = gpu.constants.gemm;
  struct Option {
    GemmTile tile;
    Seconds time;
    double operand_bytes;  // into shared memory per unit of work: fewer for larger, squarer tiles
  };
  std::vector<Option> options;
  for (GemmTile tile : tiles_to_try(problem, gpu)) {
    const std::int64_t blocks =
        ceil_div(problem.typical_rows(), tile.m) * ceil_div(problem.n, tile.n) * problem.products();
    for (const std::int64_t parts : parts_to_try(problem, tile, gpu)) {
      tile.tail_parts = parts;
      options.push_back({tile, quick_gemm_time(problem, tile, gpu),
                         1.0 / static_cast<double>(tile.m) + 1.0 / static_cast<double>(tile.n)});
    }
    tile.tail_parts = 1;
    for (const std::int64_t split : gpu.architecture->tiles.splits) {
      // A split of few steps is all pipeline fill. Some libraries split what runs at once alone,
      // others also fill the last of several waves so. Our own mainloop splits within clusters; the
      // library splits no batch.
      if (split > 1 && (!problem.library || ragged || problem.batch > 1 ||
                        problem.k < split * constants.least_split_steps * tile.k ||
                        blocks * split > constants.split_waves * blocks_at_once(tile, gpu))) {
        break;
      }
      tile.split_k = split;
      const Seconds time = quick_gemm_time(problem, tile, gpu);
      options.push_back(
          {tile, time, 1.0 / static_cast<double>(tile.m) + 1.0 / static_cast<double>(tile.n)});
    }
  }
  const auto first =
      std::min_element(options.begin(), options.end(),
                       [](const Option& a, const Option& b) { return a.time < b.time; });
  FUSELINE_ASSERT(first != options.end(), "no tile for a GEMM");
  // Among those about as fast: the fewest splits, the fewest bytes loaded, the fewest parts of the
  // last round's tiles, the earlier.
  const auto rank = [](const Option& option) {
    return std::tuple(option.tile.split_k * option.tile.cluster_k, option.operand_bytes,
                      option.tile.tail_parts);
  };
  const double indifference =
      is_own_hopper(problem, gpu) ? constants.own_tile_indifference : constants.tile_indifference;
  const Option* best = &*first;
  for (const Option& option : options) {
    if (option.time <= first->time * (1.0 + indifference) && rank(option) < rank(*best)) {
      best = &option;
    }
  }
  return best->tile;
}

}  // namespace fuseline
