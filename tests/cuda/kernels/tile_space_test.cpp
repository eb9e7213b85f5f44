// How tile loops spread their threads over a row, on the CPU.
#include "cuda/kernels/stream/tile_space.cuh"

#include <gtest/gtest.h>

namespace fuseline::gpu::stream {
namespace {

int idle(int vectors, const SideBySide& across) {
  const int width = across.lanes * across.warps;
  return ceil_div(vectors, width) * width - vectors;
}

// RoPE over 36 heads of 64 columns has 144 vectors of pairs in a row.
TEST(TileSpace, RowsThatFillNoBlockTakeFewerWarps) {
  EXPECT_EQ(idle(144, side_by_side(144, 4, 1)), 16);  // of 160; 112 of 256 with four warps
  EXPECT_EQ(side_by_side(512, 4, 1).warps, 4);        // four whole blocks
  EXPECT_EQ(side_by_side(512, 4, 1).lanes, 32);
}

TEST(TileSpace, FewLanesAreIdleWhereARowIsLongEnough) {
  for (const int warps : {1, 4, 8})
    for (const int least : {1, 16, 32})
      for (int vectors = 1; vectors <= 3000; ++vectors) {
        const SideBySide across = side_by_side(vectors, warps, least);
        EXPECT_GE(across.lanes, least);
        EXPECT_LE(across.lanes, 32);
        EXPECT_LE(across.warps, warps);
        EXPECT_EQ(32 % across.lanes, 0);
        EXPECT_EQ(warps % across.warps, 0);
        // The narrowest are idle by less than one more of them.
        const int narrowest = max_of(least, 8);
        if (vectors >= 8 * narrowest)
          EXPECT_LT(8 * idle(vectors, across), vectors) << vectors << " of " << warps << " warps";
      }
}

}  // namespace
}  // namespace fuseline::gpu::stream
