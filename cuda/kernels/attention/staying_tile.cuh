// A warpgroup's 64 rows of a tile that stays while blocks move past it, as the first operand of
// wgmma: read from shared memory by every product, or held in registers.
//
// A product of 64 × 64 with both operands in shared memory reads 4 KB in each 32 clocks of the
// tensor cores, which is all that shared memory gives; sums and copies then wait for it. With the
// tile in registers it reads half of that. A tile takes d / 2 registers of every thread.
#pragma once

#include "tile_rows.cuh"
#include "wgmma_registers.cuh"

namespace fuseline::gpu {

template <class Element, int d, bool in_registers>
struct StayingTile;

template <class Element, int d>
struct StayingTile<Element, d, false> {
  u32 rows;
  u32 panel;  // bytes from panel to panel

  FUSELINE_DEVICE StayingTile(u32 first_row, u32 panel_bytes)
      : rows(first_row), panel(panel_bytes) {}
  // s = rows · block^T, one group of products.
  template <int count>
  FUSELINE_DEVICE void multiply(float (&s)[count], u32 block, u32 block_panel) const {
    // Descriptors are computed again for each block: kept over the loop they would cost registers.
    u32 at = rows;
    asm volatile("" : "+r"(at));
#pragma unroll
    for (u32 i = 0; i < d / 16; ++i)
      Wgmma<Element, 2 * count, 0, 0>::run(s, wgmma_tile(at + i / 4 * panel + i % 4 * 32, 0),
                                           wgmma_tile(block + i / 4 * block_panel + i % 4 * 32, 0),
                                           i > 0);
    wgmma_commit();
  }
};

template <class Element, int d>
struct StayingTile<Element, d, true> {
  u32 words[d / 16][4];

  FUSELINE_DEVICE StayingTile(u32 first_row, u32 panel_bytes) {
    const u32 lane = threadIdx.x % 32;
    const u32 row = threadIdx.x % 128 / 32 * 16 + lane % 16;
#pragma unroll
    for (u32 i = 0; i < d / 16; ++i)
      ldmatrix_x4(words[i], panel_address(first_row, panel_bytes, row, 2 * i + lane / 16));
  }
  template <int count>
  FUSELINE_DEVICE void multiply(float (&s)[count], u32 block, u32 block_panel) const {
#pragma unroll
    for (u32 i = 0; i < d / 16; ++i)
      WgmmaRegisters<Element, 2 * count, 0>::run(
          s, words[i], wgmma_tile(block + i / 4 * block_panel + i % 4 * 32, 0), i > 0);
    wgmma_commit();
  }
};

}  // namespace fuseline::gpu
