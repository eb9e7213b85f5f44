// Into how many parts along K our own mainloop's tiles are cut.
#include <gtest/gtest.h>

#include <algorithm>
#include <ostream>
#include <random>
#include <vector>

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

struct Draw {
  GemmProblem problem;
  GemmTile tile;  // with the most parts that the menu has

  friend std::ostream& operator<<(std::ostream& out, const Draw& d) {
    return out << d.problem.m << " x " << d.problem.n << " x " << d.problem.k << " in " << d.tile.m
               << " x " << d.tile.n;
  }
};

// A small deep product, and one of our own tiles that may be cut. One draw behind the other: the
// order of a call's arguments is the compiler's.
Draw draw_product(std::mt19937& random, const Gpu& gpu) {
  const auto odd = [&random](unsigned most) {
    return static_cast<std::int64_t>(8 * (1 + random() % most));
  };
  const std::int64_t m = 64 + odd(60);
  const std::int64_t n = odd(200);
  const std::int64_t k = 1024 + odd(2000);
  std::vector<GemmTile> tiles;
  for (const GemmTile& tile : gpu.architecture->tiles.own)
    if (tile.tail_parts > 1) tiles.push_back(tile);
  return {own_product(m, n, k), tiles.at(random() % tiles.size())};
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

// Where one thread block adds up all parts, the menu ends at eight.
TEST(PartsChoice, EpiloguesThatDoMoreHaveFewParts) {
  const Gpu gpu = load_gpu("h100-sxm");
  GemmProblem problem = own_product(120, 696, 27896);
  problem.needs.only_stores = false;
  for (const GemmTile& tile : gpu.architecture->tiles.own)
    EXPECT_LE(fastest_tail_parts(problem, tile, gpu), 8);
}

// Ten rows of tiles of 240 x 128 fill 66 clusters of two once and a quarter.
TEST(PartsChoice, TurnedTilesHavePartsWhateverTheirEpilogueDoes) {
  const Gpu gpu = load_gpu("h200");
  GemmProblem problem = own_product(1192, 4096, 11008);
  problem.needs.only_stores = false;
  const GemmTile tile{.m = 240, .n = 128, .cluster_n = 2, .tail_parts = 32};
  EXPECT_GT(fastest_tail_parts(problem, tile, gpu), 1);
  problem.weight = parse_stored_weight("int8", "--weights", "bf16");
  EXPECT_EQ(most_tail_parts(problem, tile, gpu), 1) << "turned tiles of codes have no code for it";
}

// Of random sizes the chosen number of parts is predicted fastest of all that there may be.
TEST(PartsChoice, IsTheFastestOfAllNumbers) {
  const Gpu gpu = load_gpu("h200");
  std::mt19937 random(17);
  int cut = 0;
  for (int trial = 0; trial < 60; ++trial) {
    const Draw draw = draw_product(random, gpu);
    GemmTile tile = draw.tile;
    tile.tail_parts = fastest_tail_parts(draw.problem, draw.tile, gpu);
    if (tile.tail_parts == 1) continue;
    ++cut;
    const Seconds time = quick_gemm_time(draw.problem, tile, gpu);
    const std::int64_t most = most_tail_parts(draw.problem, draw.tile, gpu);
    EXPECT_LE(tile.tail_parts, most);
    GemmTile other = tile;
    for (other.tail_parts = 2; other.tail_parts <= std::min<std::int64_t>(most, 8);
         ++other.tail_parts)
      EXPECT_LE(time, quick_gemm_time(draw.problem, other, gpu))
          << draw << ", " << tile.tail_parts << " parts beside " << other.tail_parts;
  }
  EXPECT_GT(cut, 10);
}

// What chooses it agrees with what is simulated where tiles are whole. It counts clusters as if all
// of their columns were there, so that it is too slow where they end beyond the matrix.
TEST(PartsChoice, IsMadeByTheTimeThatIsSimulated) {
  const Gpu gpu = load_gpu("h200");
  std::mt19937 random(17);
  for (int trial = 0; trial < 60; ++trial) {
    const Draw draw = draw_product(random, gpu);
    GemmTile tile = draw.tile;
    const auto agreement = [&](const GemmProblem& problem) {
      tile.tail_parts = fastest_tail_parts(problem, draw.tile, gpu);
      return to_us(quick_gemm_time(problem, tile, gpu)) / simulated_us(problem, tile, gpu);
    };
    const std::int64_t high = tile.m * tile.cluster_m, wide = tile.n * tile.cluster_n;
    const GemmProblem& p = draw.problem;
    const GemmProblem whole_tiles =
        own_product(ceil_div(p.m, high) * high, ceil_div(p.n, wide) * wide, p.k);
    EXPECT_NEAR(agreement(whole_tiles), 1, 0.05) << draw << ", in whole tiles";
    EXPECT_GT(agreement(p), 0.95) << draw;
  }
}

}  // namespace
}  // namespace fuseline
