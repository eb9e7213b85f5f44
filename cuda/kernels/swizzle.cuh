// Where a 16-byte chunk of a tile lies in shared memory. Shared memory has 32 banks of 4 bytes, so
// eight rows of 128 bytes that are read at the same chunk would all hit the same four banks. The
// swizzle moves chunk c of row r to chunk c xor (r mod 8): eight rows, eight different bank groups.
//
//   row 0:  0 1 2 3 4 5 6 7          The copy engine (CU_TENSOR_MAP_SWIZZLE_128B), wgmma's
//   row 1:  1 0 3 2 5 4 7 6          descriptors and our own ldmatrix, stmatrix and cp.async
//   row 2:  2 3 0 1 6 7 4 5          addresses all use this one rule.
//   ...
//
// Shorter rows: two rows of 64 bytes (four of 32) share 128 bytes, so the chunks of a row are moved
// by r / 2 mod 4 (r / 4 mod 2).
#pragma once

#include "host_device.cuh"

namespace fuseline::gpu {

// Byte offset of chunk `chunk` (16 bytes) of row `row` in a tile with rows of `row_bytes`. The tile
// starts at a multiple of 8 rows' bytes.
template <int row_bytes>
FUSELINE_HD constexpr u32 swizzle(u32 row, u32 chunk) {
  static_assert(row_bytes == 128 || row_bytes == 64 || row_bytes == 32, "no such swizzle");
  constexpr u32 chunks = row_bytes / 16;
  constexpr u32 rows = 8 / chunks;  // that share 128 bytes
  return row * row_bytes + ((chunk ^ (row / rows % chunks)) << 4);
}

// Where column `col` of row `row` lies among rows of 64 numbers of 4 bytes that a warp writes 8
// columns × 4 rows at a time, every second row, and reads 8 rows × 4 pairs of columns: eights of
// columns change places from row to row, so that neither meet in a bank.
FUSELINE_HD constexpr int turned_place(int row, int col) {
  return row * 64 + (col ^ (8 * ((row / 2 % 4) ^ (row % 2 * 2))));
}
// Half of a turned tile's strip in that order, 32 rows (sm90/turned_tile.cuh). Where a lane writes
// number i of its warp's 16 columns and of the half's eight of rows `eight`...
FUSELINE_HD constexpr int turned_write(int warp, int lane, int eight, int i) {
  return turned_place(lane % 4 * 2 + i % 2, 16 * warp + lane / 4 + i / 2 * 8) + eight * 8 * 64;
}
// ... and where it reads the pair of its warp's eight rows and of the eight columns `group`.
FUSELINE_HD constexpr int turned_read(int warp, int lane, int group) {
  return turned_place(8 * warp + lane / 4, 8 * (group % 4) + lane % 4 * 2) + group / 4 * 32;
}

FUSELINE_HD constexpr u32 swizzle_128(u32 row, u32 chunk) { return swizzle<128>(row, chunk); }

}  // namespace fuseline::gpu
