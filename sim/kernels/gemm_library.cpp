#include "sim/kernels/gemm_library.h"

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

#include "base/error.h"
#include "sim/kernels/gemm_time.h"

namespace fuseline {
namespace {

// Differences in predicted time that the choice ignores.
constexpr double kIndifference = 0.03;

// Pipeline stages that fit into about 92 % of the 227 KiB of shared memory, at most 16.
std::int64_t stages_of(std::int64_t m, std::int64_t n) {
  return std::clamp<std::int64_t>(214'000 / (64 * 2 * (m + n)), 2, 16);
}

// Hopper's warp-group kernels, as their names list them: one edge is a multiple of the 64 rows of a
// warp-group MMA, the other of 8, so that a tile can be found that fills whole waves.
std::vector<GemmTile> hopper_library() {
  struct Edges {
    std::int64_t m;
    std::vector<std::int64_t> n;
  };
  static const std::array<Edges, 8> kShapes{{
      {8, {64, 128, 192, 256, 384, 512}},
      {16, {64, 128, 192, 256, 384, 512}},
      {32, {64, 128, 192, 256, 384, 512}},
      {64, {24, 40, 48, 56, 64, 80, 96, 112, 128, 168, 176, 192, 256, 320, 384, 448, 512}},
      {128, {64, 80, 96, 112, 128, 144, 168, 176, 192, 256, 320}},
      {160, {128}},
      {192, {128, 192}},
      {256, {128}},
  }};
  std::vector<GemmTile> tiles;
  for (const Edges& edges : kShapes) {
    for (const std::int64_t n : edges.n) {
      GemmTile tile{.m = edges.m, .n = n, .k = 64, .stages = stages_of(edges.m, n)};
      // Two thread blocks share the panel of the longer edge, so that a cluster is nearly square;
      // square tiles exist both ways, and thin ones share their few rows of activations among four.
      if (n <= edges.m || edges.m <= 64) {
        tile.cluster_n = 2;
        tiles.push_back(tile);
        tile.cluster_n = 1;
      }
      if (n >= edges.m && edges.m > 32) {
        tile.cluster_m = 2;
        tiles.push_back(tile);
        tile.cluster_m = 1;
      }
      if (edges.m <= 64) {
        tile.cluster_n = 4;
        tiles.push_back(tile);
      }
    }
  }
  return tiles;
}

std::vector<GemmTile> mma_sync_library() {
  std::vector<GemmTile> tiles;
  for (const auto& [m, n, stages] : {std::array<std::int64_t, 3>{128, 256, 3},
                                     {256, 128, 3},
                                     {128, 128, 4},
                                     {64, 256, 4},
                                     {256, 64, 4},
                                     {64, 128, 5},
                                     {128, 64, 5},
                                     {64, 64, 6},
                                     {32, 128, 6},
                                     {32, 64, 6},
                                     {32, 32, 8},
                                     {16, 64, 6}}) {
    tiles.push_back({.m = m, .n = n, .k = 64, .stages = stages});
  }
  return tiles;
}

// A part of K of fewer than 4 steps is all pipeline fill, and more clusters than run at once are no
// gain: their blocks make one tile each.
bool worth_splitting(const GemmProblem& problem, const GemmTile& tile, const Gpu& gpu,
                     const GemmConstants& constants) {
  const std::int64_t tiles = ceil_div(problem.m, tile.m) * ceil_div(problem.n, tile.n);
  return problem.batch == 1 && problem.k >= tile.cluster_k * 4 * tile.k &&
         tiles * tile.cluster_k <= blocks_at_once(tile, gpu, constants);
}

}  // namespace

std::vector<GemmTile> candidate_tiles(Architecture architecture, bool library) {
  switch (architecture) {
    case Architecture::ampere:
    case Architecture::ada:
      if (library) return mma_sync_library();
      // cuda/kernels/gemm_sm80.cuh has the tiles of 128 rows; the thin ones, for decode, are what
      // an expert mainloop would have, and not measured.
      return {{.m = 128, .n = 256, .stages = 3}, {.m = 128, .n = 128, .stages = 4},
              {.m = 64, .n = 128, .stages = 5},  {.m = 64, .n = 64, .stages = 6},
              {.m = 32, .n = 64, .stages = 6},   {.m = 16, .n = 64, .stages = 6}};
    case Architecture::hopper:
    case Architecture::blackwell:
      break;
  }
  if (library) return hopper_library();
  // Those of cuda/kernels/gemm_sm90.cuh: whole slabs of 64 columns; two blocks below each other
  // share the tile of weights.
  std::vector<GemmTile> tiles;
  for (const std::int64_t cluster_m : {2, 1}) {
    for (const std::int64_t m : {128, 64}) {
      for (const std::int64_t n : {256, 192, 128, 64})
        tiles.push_back({.m = m, .n = n, .stages = stages_of(m, n), .cluster_m = cluster_m});
    }
  }
  // For few rows: more thread blocks than there are tiles.
  for (const std::int64_t cluster_k : {2, 3, 4}) {
    for (const std::int64_t n : {192, 128, 64})
      tiles.push_back({.m = 64, .n = n, .stages = 4, .cluster_k = cluster_k});
  }
  return tiles;
}

GemmTile choose_tile(const GemmProblem& problem, const Gpu& gpu, const GemmConstants& constants) {
  if (problem.tile) return *problem.tile;
  const Architecture architecture = kernel_architecture(gpu);
  const bool hopper =
      architecture == Architecture::hopper || architecture == Architecture::blackwell;
  const std::vector<GemmTile> candidates = candidate_tiles(architecture, problem.library);
  // Up to 32 rows stay in one tile, the narrowest that covers them, and up to 64 in at most two:
  // tiles side by side along M load the weights twice, a wider one only adds padding. Such tiles
  // are whole warp groups wide.
  const bool thin = problem.m <= 64;
  std::int64_t cover = std::numeric_limits<std::int64_t>::max();
  for (const GemmTile& tile : candidates) {
    if (tile.m >= problem.m) cover = std::min(cover, tile.m);
  }
  const auto excluded = [&](const GemmTile& tile) {
    if (!problem.library) {
      return (hopper && !fits(problem.needs, tile)) ||
             (tile.cluster_m > 1 && problem.m <= tile.m) ||
             (tile.cluster_k > 1 && !worth_splitting(problem, tile, gpu, constants));
    }
    return tile.m > cover || tile.m < std::min<std::int64_t>(cover, 32) ||
           (thin && tile.n % 64 != 0 && problem.n > tile.n);
  };
  struct Option {
    GemmTile tile;
    Seconds time;
    double operand_bytes;  // into shared memory per unit of work: fewer for larger, squarer tiles
  };
  std::vector<Option> options;
  for (GemmTile tile : candidates) {
    if (excluded(tile)) continue;
    const std::int64_t blocks =
        ceil_div(problem.m, tile.m) * ceil_div(problem.n, tile.n) * problem.batch;
    for (const std::int64_t split : {1, 2, 3, 4, 5, 6, 8, 12, 16}) {
      // A split of fewer than 4 steps is all pipeline fill, and more units than run at once are no
      // gain. Our own mainloop splits within clusters.
      if (split > 1 && (!problem.library || problem.k < split * 4 * tile.k ||
                        blocks * split > blocks_at_once(tile, gpu, constants))) {
        break;
      }
      tile.split_k = split;
      const Seconds time = quick_gemm_time(problem, tile, gpu, constants);
      options.push_back(
          {tile, time, 1.0 / static_cast<double>(tile.m) + 1.0 / static_cast<double>(tile.n)});
    }
  }
  const auto first =
      std::min_element(options.begin(), options.end(),
                       [](const Option& a, const Option& b) { return a.time < b.time; });
  FUSELINE_ASSERT(first != options.end(), "no tile for a GEMM");
  // Among those about as fast: the fewest splits, the fewest bytes loaded, the earlier.
  const auto rank = [](const Option& option) {
    return std::pair(option.tile.split_k * option.tile.cluster_k, option.operand_bytes);
  };
  const Option* best = &*first;
  for (const Option& option : options) {
    if (option.time <= first->time * (1.0 + kIndifference) && rank(option) < rank(*best)) {
      best = &option;
    }
  }
  return best->tile;
}

}  // namespace fuseline
