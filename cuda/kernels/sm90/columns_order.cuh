// Who has what of weights in codes where a thread block has some columns of the result for all of K
// (codes_columns.cuh). Checked on the CPU.
//
// A box is 128 bytes of the block's rows of weights, and lies in shared memory in the 128-byte
// swizzle. It has two slices of 64 bytes, which go to two warps: slices go round the warps along K.
// A lane reads 16 bytes of a row: lanes 4 t to 4 t + 3 of a warp have row `row_of_four(t)` of each
// eight, and lane q of the four has chunk q of the slice.
#pragma once

#include "../swizzle.cuh"

namespace fuseline::gpu {

constexpr int codes_box_bytes = 128, codes_slice_bytes = 64;  // of a row of weights
constexpr int slices_of_box = codes_box_bytes / codes_slice_bytes;

// Eight lanes that read together have two rows. They meet the same chunks of a slice, which the
// swizzle moves by the row mod 8: only rows that differ by 4 have them in other banks.
FUSELINE_HD constexpr int row_of_four(int t) { return t % 2 * 4 + t / 2; }

// Where a lane's 16 bytes of row row_of_four(lane / 4) lie in a box; rows 8 further on lie 1,024
// bytes further on.
FUSELINE_HD constexpr u32 lane_of_box(int lane, int slice) {
  return swizzle_128(static_cast<u32>(row_of_four(lane / 4)),
                     static_cast<u32>(4 * slice + lane % 4));
}

// The slices of the warp that is number `k_warp` of `k_warps` along K: its slice in each of its
// boxes, its first box, and how far the next one is.
struct SlicesOfWarp {
  int slice, first_box, step;
};
FUSELINE_HD constexpr SlicesOfWarp slices_of_warp(int k_warp, int k_warps) {
  return {k_warp % slices_of_box, k_warp / slices_of_box, k_warps / slices_of_box};
}

// Where 8 columns of A that begin at `column` lie in shared memory, of `x_rows` rows: what a warp
// reads together lies together, 4 lanes for each row.
template <int chunk, int x_rows>
FUSELINE_HD constexpr u32 place_of_x(int row, int column) {
  constexpr int unit = chunk / 4, eights = unit / 8;  // columns of a lane
  const int slice = column / chunk, in_slice = column % chunk;
  const int eight = in_slice % unit / 8, lane = in_slice / unit;
  return static_cast<u32>(((slice * eights + eight) * x_rows + row) * 64 + lane * 16);
}

// The first column of the strip of 32 that a warp finishes. The last strip of a block whose columns
// are no multiple of 32 begins in the one before: both store the same numbers there.
FUSELINE_HD constexpr int first_of_strip(int strip, int columns) {
  return 32 * strip + 32 <= columns ? 32 * strip : columns - 32;
}

}  // namespace fuseline::gpu
