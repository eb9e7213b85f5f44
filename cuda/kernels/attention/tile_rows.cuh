// Tiles of heads' rows in shared memory. Rows of 16-bit results go from tensor-core accumulators to
// global memory through them, so that a warp writes whole lines, and only the rows that exist.
#pragma once

#include "../ptx/matrix.cuh"
#include "../ptx/mbarrier.cuh"
#include "../swizzle.cuh"

namespace fuseline::gpu {

// Panels of 64 columns that a head's columns lie in. Of heads of 80, 96 and 112 columns, and so on,
// the copy engine brings the last panel whole too, so that every width has the same boxes and the
// same swizzle. What lies behind the head there is the next head's, or zeros at the tensor's edge: no
// product reads it, as its steps of K and its N end with the head.
template <int d>
constexpr int head_panels = (d + 63) / 64;
// The widths that wgmma's kernels of attention have, forward and backward.
template <int d>
constexpr bool wgmma_head = d % 16 == 0 && 64 <= d && d <= 256;
template <int d>
constexpr bool wgmma_gradient_head = wgmma_head<d> && d <= 128;

// A tile in shared memory: panels of 64 columns, each `panel_bytes` apart, rows of 128 bytes,
// 128-byte swizzle: as the copy engine leaves it and wgmma reads it.
FUSELINE_DEVICE u32 panel_address(u32 tile, u32 panel_bytes, u32 row, u32 chunk) {
  return tile + chunk / 8 * panel_bytes + swizzle<128>(row, chunk % 8);
}

// One warp's 16 rows, from row `first` of the tile on: accumulators acc[4 j + 2 half + e] to the
// tile, rounded.
template <class Element, int count>
FUSELINE_DEVICE void write_rows(u32 tile, u32 panel_bytes, u32 first, const float (&acc)[count]) {
  const u32 lane = threadIdx.x % 32;
#pragma unroll
  for (int i = 0; i < count / 8; ++i) {
    u32 words[4];
#pragma unroll
    for (int w = 0; w < 4; ++w)
      words[w] = pack<Element>(acc[8 * i + 2 * w], acc[8 * i + 2 * w + 1]);
    stmatrix_x4(panel_address(tile, panel_bytes, first + lane % 16, 2 * i + lane / 16), words);
  }
}

// The same 16 rows from the tile to `to`, which is row `first`'s place; `rows` of them exist.
template <class Element, int cols>
FUSELINE_DEVICE void copy_rows(Element* to, long long ld, int rows, u32 tile, u32 panel_bytes,
                               u32 first) {
  constexpr int chunks = cols / 8;
  const int lane = threadIdx.x % 32;
  // Rows of other lengths take divisions: all of them at once would cost registers.
  constexpr int at_once = (chunks & (chunks - 1)) == 0 ? chunks / 2 : 4;
#pragma unroll at_once
  for (int i = 0; i < 16 * chunks / 32; ++i) {
    const int row = (32 * i + lane) / chunks;
    const int chunk = (32 * i + lane) % chunks;
    const uint4 x = load_shared_16(panel_address(tile, panel_bytes, first + row, chunk));
    if (row < rows) *reinterpret_cast<uint4*>(to + row * ld + 8 * chunk) = x;
  }
}

}  // namespace fuseline::gpu
