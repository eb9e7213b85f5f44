// Where a chunk of a scan lies in shared memory, and what every role of its thread block knows
// (chunks.cuh).
#pragma once

#include "../ptx/mbarrier.cuh"
#include "factors.cuh"
#include "mainloop.cuh"

namespace fuseline::gpu::stream {

// Where a chunk lies in shared memory, in bytes. Rows are 16 bytes longer than their columns: an
// odd number of 16 bytes, so that ldmatrix finds eight rows in eight different banks.
template <class Kernel>
struct ChunkTile {
  static constexpr int row_warps = chunk_tokens / 16, helpers = 4;
  static constexpr int state_warps = Kernel::cols / 16 * Kernel::across;
  static constexpr int helper_threads = 32 * helpers;
  static constexpr int threads = 32 * (row_warps + state_warps + helpers);
  static constexpr int x_pitch = 2 * Kernel::cols + 16, key_pitch = 2 * Kernel::numbers + 16;
  static constexpr int k = chunk_tokens * x_pitch, q = k + chunk_tokens * key_pitch;
  static constexpr int stage_bytes = q + chunk_tokens * key_pitch;
  static constexpr int stages = 0;  // two: x, k, q
  // Of every chunk one for the scores' part of y, and one for each part of N; in fp32. The pitch
  // (in floats) lets the lanes of a transposed tile store to different banks.
  static constexpr int parts = 1 + Kernel::across;
  static constexpr int y_pitch = Kernel::cols + 4;
  static constexpr int part_floats = chunk_tokens * y_pitch;
  static constexpr int results = stages + 2 * stage_bytes;  // two times all parts
  static constexpr int factors = results + 2 * 4 * parts * part_floats;
  static constexpr int shared_bytes = factors + 2 * static_cast<int>(sizeof(ChunkFactors));
  // The state of a warp, in tiles of 16 × 16 numbers.
  static constexpr int state_tiles = Kernel::numbers / 16 / Kernel::across;
  static_assert(Kernel::cols % 16 == 0 && state_tiles * Kernel::across * 16 == Kernel::numbers,
                "whole tiles for every warp");
};

// threadIdx.x and blockIdx.x. Who asks again reads them again: what follows from them need not stay
// in registers in between.
FUSELINE_DEVICE int thread_in_block() {
  int x;
  asm volatile("mov.u32 %0, %%tid.x;" : "=r"(x));
  return x;
}
FUSELINE_DEVICE int block_in_grid() {
  int x;
  asm volatile("mov.u32 %0, %%ctaid.x;" : "=r"(x));
  return x;
}

// What all roles know: which columns of which sequence, and where things lie.
template <class Kernel>
struct ChunkPlace {
  using Tile = ChunkTile<Kernel>;
  const ScanSpace& space;
  unsigned char* shared;
  int sequence, head, first_col, chunks;
  int warp, lane;

  FUSELINE_DEVICE ChunkPlace(const ScanSpace& s, unsigned char* memory) : space(s), shared(memory) {
    const int across = s.heads * s.head_width / Kernel::cols;
    const int block = block_in_grid(), thread = thread_in_block();
    sequence = block / across;
    first_col = block % across * Kernel::cols;
    head = first_col / s.head_width;
    chunks = ceil_div(s.tokens, chunk_tokens);
    warp = thread / 32;
    lane = thread % 32;
  }
  FUSELINE_DEVICE u32 stage(int chunk) const {
    return shared_address(shared) + Tile::stages + (chunk & 1) * Tile::stage_bytes;
  }
  FUSELINE_DEVICE float* results(int chunk, int part) const {
    return reinterpret_cast<float*>(shared + Tile::results) +
           ((chunk & 1) * Tile::parts + part) * Tile::part_floats;
  }
  FUSELINE_DEVICE ChunkFactors& factors(int chunk) const {
    return reinterpret_cast<ChunkFactors*>(shared + Tile::factors)[chunk & 1];
  }
};

// The results of a place are sums of parts.
template <int units_, int parts, int part_floats>
struct ChunkResults : ScanPlace<units_> {
  FUSELINE_DEVICE Strip<units_> result() const {
    Strip<units_> out;
#pragma unroll
    for (int u = 0; u < units_; ++u)
#pragma unroll
      for (int e = 0; e < vector_cols; e += 4) {
        const float* from = this->results + u * this->pitch + e;
        auto sum = floats_at<4>(from);
#pragma unroll
        for (int part = 1; part < parts; ++part) {
          const auto more = floats_at<4>(from + part * part_floats);
#pragma unroll
          for (int i = 0; i < 4; ++i) sum.v[i] += more.v[i];
        }
#pragma unroll
        for (int i = 0; i < 4; ++i) out.at(u, e + i) = sum.v[i];
      }
    return out;
  }
};

}  // namespace fuseline::gpu::stream
