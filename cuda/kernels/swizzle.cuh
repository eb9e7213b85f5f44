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

// Half of a turned tile's strip, 32 rows of 64 numbers of 4 bytes (sm90/turned_tile.cuh). A warp
// writes 8 columns × 4 rows at a time, every second row, and reads 8 rows × 4 pairs of columns:
// eights of columns change places from row to row, so that neither meet in a bank. In bytes.
FUSELINE_HD constexpr u32 turned_place(int row, int col) {
  return static_cast<u32>(4 * (row * 64 + (col ^ (8 * ((row / 2 % 4) ^ (row % 2 * 2))))));
}
// Where a lane writes its first number: column lane / 4 of its warp's 16, row 2 (lane mod 4)...
FUSELINE_HD constexpr u32 turned_write(int warp, int lane) {
  return turned_place(lane % 4 * 2, 16 * warp + lane / 4);
}
// ... and number i of the eight of rows `eight`: row i mod 2, column 8 (i / 2) from there. The
// buffer begins at a multiple of 128 bytes, so that eights of columns change places by xor.
FUSELINE_HD constexpr u32 turned_write_from(u32 first, int eight, int i) {
  return (first ^ static_cast<u32>(32 * (i / 2) + 64 * (i % 2))) +
         static_cast<u32>(256 * (8 * eight + i % 2));
}
// Where a lane reads the first pair of row lane / 4 of its warp's eight, and that of eight `group`
// of columns.
FUSELINE_HD constexpr u32 turned_read(int warp, int lane) {
  return turned_place(8 * warp + lane / 4, lane % 4 * 2);
}
FUSELINE_HD constexpr u32 turned_read_from(u32 first, int group) {
  return (first ^ static_cast<u32>(32 * (group % 4))) + static_cast<u32>(128 * (group / 4));
}

FUSELINE_HD constexpr u32 swizzle_128(u32 row, u32 chunk) { return swizzle<128>(row, chunk); }

}  // namespace fuseline::gpu
