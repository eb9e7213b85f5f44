// Into how many parts along K our own mainloop's tiles are cut.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "sim/kernels/gemm_library.h"
#include "sim/kernels/gemm_time.h"
#include "tests/sim/kernels/own_product.h"

namespace fuseline {
namespace {

using test::own_product;
using test::simulated_us;

GemmTile whole(GemmTile tile) {
  tile.tail_parts = 1;
  return tile;
}

// 11 tiles of 128 x 64 have nothing to do for 121 of 132 SMs.
TEST(PartsChoice, AFewTilesOfADeepProductFillTheGpuInParts) {
  const Gpu gpu = load_gpu("h100-sxm");
  const GemmProblem problem = own_product(120, 696, 27896);
  const GemmTile tile = choose_tile(problem, gpu);
  EXPECT_GT(tile.tail_parts, 8);
  EXPECT_LT(simulated_us(problem, tile, gpu), 0.4 * simulated_us(problem, whole(tile), gpu));
  double best = simulated_us(problem, whole(tile), gpu);
  for (const GemmTile& other : gpu.architecture->tiles.own)
    if (other.m > 64) best = std::min(best, simulated_us(problem, whole(other), gpu));
  EXPECT_LT(simulated_us(problem, tile, gpu), 0.5 * best);
}

TEST(PartsChoice, PartsHaveMoreThanAFewSteps) {
  const Gpu gpu = load_gpu("h100-sxm");
  for (const std::int64_t k : {448, 1024, 4096}) {
    const GemmTile tile = choose_tile(own_product(120, 696, k), gpu);
    EXPECT_LE(tile.tail_parts, std::max<std::int64_t>(1, k / 64 / 4)) << k;
  }
}

// 66 clusters of two have a tile of 128 x 256 for each thread block.
TEST(PartsChoice, ARoundThatIsFullIsNotCut) {
  const Gpu gpu = load_gpu("h100-sxm");
  EXPECT_EQ(fastest_tail_parts(own_product(256, 256 * 66, 4096),
                               {.m = 128, .n = 256, .cluster_m = 2, .tail_parts = 32}, gpu),
            1);
}

// Where one thread block adds up all parts, the menu ends at eight, and turned tiles have none.
TEST(PartsChoice, EpiloguesThatDoMoreHaveFewParts) {
  const Gpu gpu = load_gpu("h100-sxm");
  GemmProblem problem = own_product(120, 696, 27896);
  problem.needs.only_stores = false;
  for (const GemmTile& tile : gpu.architecture->tiles.own)
    EXPECT_LE(fastest_tail_parts(problem, tile, gpu), tile.turned() ? 1 : 8);
}

// Of random sizes the chosen number of parts is predicted fastest, and what chooses it agrees with
// what is simulated.
TEST(PartsChoice, IsTheFastestOfAllNumbers) {
  const Gpu gpu = load_gpu("h200");
  std::mt19937 random(17);
  const auto odd = [&random](unsigned most) {
    return static_cast<std::int64_t>(8 * (1 + random() % most));
  };
  int cut = 0;
  for (int trial = 0; trial < 60; ++trial) {
    const GemmProblem problem = own_product(64 + odd(60), odd(200), 1024 + odd(2000));
    const auto& own = gpu.architecture->tiles.own;
    GemmTile tile = own[random() % own.size()];
    if (tile.tail_parts == 1) continue;
    const std::int64_t most = tile.tail_parts;
    tile.tail_parts = fastest_tail_parts(problem, tile, gpu);
    if (tile.tail_parts == 1) continue;
    ++cut;
    const Seconds time = quick_gemm_time(problem, tile, gpu);
    GemmTile other = tile;
    for (other.tail_parts = 2; other.tail_parts <= std::min<std::int64_t>(most, 8);
         ++other.tail_parts)
      // Of numbers for whose sums there is no place some are 5 % faster.
      EXPECT_LE(time.value(), 1.06 * quick_gemm_time(problem, other, gpu).value())
          << other.tail_parts;
    const double simulated = simulated_us(problem, tile, gpu);
    // Since only what misses L2 keeps HBM busy, what chooses is up to 20 % slower: it spreads the
    // compulsory reads over all parts, and the simulator has them in the first.
    EXPECT_NEAR(to_us(time) / simulated, 1, 0.2)
        << problem.m << " x " << problem.n << " x " << problem.k << " in " << tile.m << " x "
        << tile.n << ", " << tile.tail_parts << " parts";
  }
  EXPECT_GT(cut, 10);
}

}  // namespace
}  // namespace fuseline
