// Tiles for mma.sync: rows of a head from global to shared memory (cp.async), and products of 16
// rows per warp. Rows in shared memory are 16 bytes longer than a head: d / 8 + 1 chunks of 16
// bytes is odd, so eight rows at the same chunk lie in eight different bank groups for every d that
// is a multiple of 16, without a swizzle.
#pragma once

#include "../ptx/cp_async.cuh"
#include "../ptx/matrix.cuh"
#include "../ptx/mbarrier.cuh"

namespace fuseline::gpu {

template <int d>
constexpr int row_pitch = 2 * d + 16;  // bytes

// Rows of one head of an operand: row r at data + r · ld.
template <class Element>
struct HeadRows {
  const Element* data;
  long long ld;
};

// Rows [first, first + count) to shared memory by `threads` threads, of which this is `thread`;
// rows outside [0, rows) become zeros. ld and data are multiples of 16 bytes.
template <int d, int count, int threads, class Element>
FUSELINE_DEVICE void fetch_rows(u32 to, const HeadRows<Element>& from, int first, int rows,
                                int thread) {
  constexpr int chunks = d / 8;
  // All of them exist, as nearly always: each thread's rows lie at equal distances.
  if constexpr (threads % chunks == 0 && count * chunks % threads == 0) {
    if (first >= 0 && first + count <= rows) {
      constexpr int step = threads / chunks;  // rows at once
      const int row = thread / chunks, chunk = thread % chunks;
      const Element* at = from.data + (first + row) * from.ld + 8 * chunk;
      to += row * row_pitch<d> + 16 * chunk;
#pragma unroll
      for (int i = 0; i < count / step; ++i) {
        cp_async_16(to + i * step * row_pitch<d>, at, 16);
        at += step * from.ld;
      }
      return;
    }
  }
#pragma unroll 4
  for (int i = thread; i < count * chunks; i += threads) {
    const int row = i / chunks, chunk = i % chunks;
    const int r = first + row;
    const bool exists = r >= 0 && r < rows;
    cp_async_16(to + row * row_pitch<d> + 16 * chunk,
                from.data + (exists ? r * from.ld : 0) + 8 * chunk, exists ? 16 : 0);
  }
}

// A's words of 16 rows: step i covers columns 16 i to 16 i + 15.
template <int d>
FUSELINE_DEVICE void load_a(u32 (&words)[4], u32 tile, int i) {
  const u32 lane = threadIdx.x % 32;
  ldmatrix_x4(words, tile + lane % 16 * row_pitch<d> + 32 * i + lane / 16 * 16);
}

// s[16, keys] = a[16, d] b[keys, d]^T; s[4 j + 2 half + e] as in online_softmax.cuh.
template <class Element, int d, int keys>
FUSELINE_DEVICE void multiply_rows(float (&s)[keys / 2], const u32 (&a)[d / 16][4], u32 b) {
  const u32 lane = threadIdx.x % 32;
  const u32 row = lane / 16 * 8 + lane % 8;
#pragma unroll
  for (float& x : s) x = 0.0F;
#pragma unroll
  for (int i = 0; i < d / 16; ++i)
#pragma unroll
    for (int j = 0; j < keys / 16; ++j) {
      u32 words[4];
      ldmatrix_x4(words, b + (16 * j + row) * row_pitch<d> + 32 * i + lane / 8 % 2 * 16);
      mma_16x8x16<Element>(reinterpret_cast<float(&)[4]>(s[8 * j]), a[i], words[0], words[1]);
      mma_16x8x16<Element>(reinterpret_cast<float(&)[4]>(s[8 * j + 4]), a[i], words[2], words[3]);
    }
}
// The same with a's rows in shared memory.
template <class Element, int d, int keys>
FUSELINE_DEVICE void multiply_rows(float (&s)[keys / 2], u32 a_tile, u32 b) {
  const u32 lane = threadIdx.x % 32;
  const u32 row = lane / 16 * 8 + lane % 8;
#pragma unroll
  for (float& x : s) x = 0.0F;
#pragma unroll
  for (int i = 0; i < d / 16; ++i) {
    u32 a[4];
    load_a<d>(a, a_tile, i);
#pragma unroll
    for (int j = 0; j < keys / 16; ++j) {
      u32 words[4];
      ldmatrix_x4(words, b + (16 * j + row) * row_pitch<d> + 32 * i + lane / 8 % 2 * 16);
      mma_16x8x16<Element>(reinterpret_cast<float(&)[4]>(s[8 * j]), a, words[0], words[1]);
      mma_16x8x16<Element>(reinterpret_cast<float(&)[4]>(s[8 * j + 4]), a, words[2], words[3]);
    }
  }
}

// o[16, d] += p[16, keys] b[keys, d], p rounded.
template <class Element, int d, int keys>
FUSELINE_DEVICE void accumulate_rows(float (&o)[d / 2], const float (&p)[keys / 2], u32 b) {
  const u32 lane = threadIdx.x % 32;
#pragma unroll
  for (int j = 0; j < keys / 16; ++j) {
    u32 a[4];
#pragma unroll
    for (int w = 0; w < 4; ++w) a[w] = pack<Element>(p[8 * j + 2 * w], p[8 * j + 2 * w + 1]);
#pragma unroll
    for (int i = 0; i < d / 16; ++i) {
      u32 words[4];
      ldmatrix_x4_transposed(words,
                             b + (16 * j + lane % 16) * row_pitch<d> + 32 * i + lane / 16 * 16);
      mma_16x8x16<Element>(reinterpret_cast<float(&)[4]>(o[8 * i]), a, words[0], words[1]);
      mma_16x8x16<Element>(reinterpret_cast<float(&)[4]>(o[8 * i + 4]), a, words[2], words[3]);
    }
  }
}

}  // namespace fuseline::gpu
