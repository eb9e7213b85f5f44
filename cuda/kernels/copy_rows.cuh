// Rows that lie apart in runs to rows side by side: what a GEMM's tiles, which cross sequences,
// cannot load themselves (one stream's rows of joint sequences).
#pragma once

#include "launch_order.cuh"
#include "element.cuh"

namespace fuseline::gpu {

// Bytes everywhere; rows start at multiples of 16.
struct CopyRowsArgs {
  const unsigned char* from;  // row 0 of group 0
  unsigned char* to;
  long long from_row, from_group, to_row;
  int rows, group_rows;
  int row_bytes;  // that are copied; even
};

// A thread copies 16 bytes: rows · ceil(row_bytes / 16) threads.
FUSELINE_DEVICE void copy_rows_apart(const CopyRowsArgs& args) {
  const int chunks = ceil_div(args.row_bytes, 16);
  const long long index = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
  const int row = static_cast<int>(index / chunks);
  const int first = static_cast<int>(index % chunks) * 16;
  if (row >= args.rows) return;
  const long long group = row / args.group_rows, within = row % args.group_rows;
  const unsigned char* from = args.from + group * args.from_group + within * args.from_row + first;
  unsigned char* to = args.to + row * args.to_row + first;
  if (first + 16 <= args.row_bytes) {
    *reinterpret_cast<uint4*>(to) = *reinterpret_cast<const uint4*>(from);
    return;
  }
  for (int i = 0; i < args.row_bytes - first; i += 2)
    *reinterpret_cast<u16*>(to + i) = *reinterpret_cast<const u16*>(from + i);
}

}  // namespace fuseline::gpu
