#include "sim/gpu/plan_target.h"

#include <algorithm>
#include <vector>

namespace fuseline {
namespace {

// Tiles to try, the largest first.
std::vector<GemmTile> tiles_of(const Gpu& gpu) {
  std::vector<GemmTile> tiles = {Target{}.tile};
  if (gpu.architecture == nullptr) return tiles;
  std::vector<GemmTile> own = gpu.architecture->tiles.own;
  std::stable_sort(own.begin(), own.end(),
                   [](const GemmTile& a, const GemmTile& b) { return a.m * a.n > b.m * b.n; });
  for (const GemmTile& tile : own) {
    if (tile.m * tile.n < tiles.front().m * tiles.front().n) {
      tiles.push_back({.m = tile.m, .n = tile.n, .k = tile.k});
    }
  }
  return tiles;
}

}  // namespace

Target plan_target(const Gpu& gpu) {
  constexpr std::int64_t kFewestStages = 2;  // one is loaded while the other is multiplied
  Target target;
  target.name = gpu.name;
  target.shared_bytes_per_block = gpu.smem_per_block_max.value();
  const std::int64_t most_stages = target.tile.stages;
  for (const GemmTile& tile : tiles_of(gpu)) {
    target.tile = tile;
    for (target.tile.stages = most_stages; target.tile.stages >= kFewestStages;
         --target.tile.stages) {
      if (target.operand_tiles() >= 1) return target;
    }
  }
  target.tile.stages = kFewestStages;
  return target;
}

}  // namespace fuseline
