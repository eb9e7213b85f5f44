// A scan on the device: its operands in memory, and the thread block that walks (walk.cuh).
#pragma once

#include "../launch_order.cuh"
#include "../stream/map.cuh"
#include "../stream/memory.cuh"
#include "walk.cuh"

namespace fuseline::gpu::stream {

// Columns [col, col + width) of a row; 0 from column `end` on. An aligned tile's `col` is a
// multiple of `width`.
template <int width, class T, bool aligned>
FUSELINE_DEVICE void read_row(const Tile<T, aligned>& from, int row, int col, int end,
                              float (&to)[width]) {
  if constexpr (aligned) {
    read_some(end - col, from.at(row, col), to);
#pragma unroll
    for (int e = 0; e < width; ++e)
      if (col + e >= end) to[e] = 0.0F;  // what follows the row may be anything
  } else {
#pragma unroll
    for (int e = 0; e < width; ++e) to[e] = col + e < end ? to_float(*from.at(row, col + e)) : 0.0F;
  }
}
template <class T, bool aligned>
FUSELINE_DEVICE float read_number(const Tile<T, aligned>& from, int row, int col) {
  return to_float(*from.at(row, col));
}
template <int width, class T, bool aligned>
FUSELINE_DEVICE void write_row(const Tile<T, aligned>& to, int row, int col, int end,
                               const float (&from)[width]) {
  if constexpr (aligned) {
    write_some(end - col, to.at(row, col), from);
  } else {
#pragma unroll
    for (int e = 0; e < width; ++e)
      if (col + e < end) *to.at(row, col + e) = from_float<T>(from[e]);
  }
}

template <class T>
FUSELINE_DEVICE void put_number(T* to, float x) {
  *to = from_float<T>(x);
}

struct ThreadBlock {
  FUSELINE_DEVICE int thread() const { return static_cast<int>(threadIdx.x); }
  FUSELINE_DEVICE int number() const { return static_cast<int>(blockIdx.x); }
  FUSELINE_DEVICE void sync() const { __syncthreads(); }
  // With a lane of the same warp; all of its lanes are here.
  FUSELINE_DEVICE float exchange(float x, int apart) const {
    return __shfl_xor_sync(0xffffffffU, x, apart);
  }
};

template <class Kernel>
FUSELINE_DEVICE void scan(const typename Kernel::Params& params, const ScanSpace& space) {
  extern __shared__ __align__(16) float shared[];
  walk_tokens<Kernel>(params, space, shared, ThreadBlock());
}

}  // namespace fuseline::gpu::stream
