// A warp's 16 rows from a box in shared memory to global memory, 16 bytes a lane: how sm_80 stores
// tiles, and sm_90 where the copy engine cannot.
#pragma once

#include "../element.cuh"
#include "../ptx/matrix.cuh"
#include "../swizzle.cuh"

namespace fuseline::gpu {

// Calls f(row, chunk) for the 16-byte chunks of 16 rows of `row_bytes` that this lane moves.
template <int row_bytes, class F>
FUSELINE_DEVICE void for_each_chunk(F&& f) {
  constexpr int chunks = row_bytes / 16;
  const int lane = threadIdx.x % 32;
#pragma unroll
  for (int i = lane; i < 16 * chunks; i += 32) f(i / chunks, i % chunks);
}

// Adds the 16 bytes of `v` to those of `old`, element by element.
template <class T>
FUSELINE_DEVICE uint4 add_chunks(uint4 v, uint4 old) {
  u32* a = reinterpret_cast<u32*>(&v);
  const u32* b = reinterpret_cast<const u32*>(&old);
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    static_assert(sizeof(T) > 1, "codes are stored, and not added to");
    if constexpr (sizeof(T) == 2) {
      const FloatPair x = unpack<T>(a[i]);
      const FloatPair y = unpack<T>(b[i]);
      a[i] = pack<T>(x.low + y.low, x.high + y.high);
    } else {
      a[i] = __float_as_uint(__uint_as_float(a[i]) + __uint_as_float(b[i]));
    }
  }
  return v;
}

// How far a row of a result lies from its first: of a matrix, and of rows that lie apart in runs of
// `run`, each `step` rows after the one before. In elements.
struct MatrixRows {
  int ld;
  FUSELINE_DEVICE long long operator()(int row) const { return static_cast<long long>(row) * ld; }
};
struct RunRows {
  int ld, run, step;
  FUSELINE_DEVICE long long operator()(int row) const {
    return (static_cast<long long>(row / run) * step + row % run) * ld;
  }
};

// Where a box lies in a result of `rows` rows and `cols` columns: its corner may lie outside.
struct BoxPlace {
  int row, col;
  int rows, cols;
};

// Rows first_row to first_row + 15 of the box; place.row is the first of them. Rows and columns
// outside the result stay.
template <bool add, int row_bytes, class T, class Rows>
FUSELINE_DEVICE void copy_box(u32 box, u32 first_row, T* data, const Rows& rows,
                              const BoxPlace& place) {
  for_each_chunk<row_bytes>([&](int row, int chunk) {
    const int col = place.col + chunk * (16 / static_cast<int>(sizeof(T)));
    if (place.row + row >= place.rows || col < 0 || col >= place.cols) return;
    auto* at = reinterpret_cast<uint4*>(data + rows(place.row + row) + col);
    const uint4 v = load_shared_16(box + swizzle<row_bytes>(first_row + row, chunk));
    if constexpr (add)
      *at = add_chunks<T>(v, *at);
    else
      *at = v;
  });
}

}  // namespace fuseline::gpu
