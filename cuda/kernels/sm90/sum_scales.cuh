// Scales of codes as factors of sums. Each row of either operand has one, so that it waits behind
// the mainloop: sum · scale of A's row · scale of B's row.
//
// The warpgroup's threads ask for the numbers of its rows and columns of the tensor cores' tile
// while the mainloop's last step is multiplied, which hides their way from memory: ahead of the
// mainloop they would take registers from it. They are passed round through the warpgroup's first store
// buffer, once the copy engine has read what lay there. Whoever writes there next has a barrier
// before, as for any other box.
#pragma once

#include "../codes.cuh"
#include "block.cuh"

namespace fuseline::gpu {

template <class Block>
struct SumScales {
  using Config = typename Block::Config;
  static constexpr int subtiles = Config::subtiles, rows = 64 * subtiles;
  static constexpr int columns = Config::tile_n;
  static constexpr int rows_each = ceil_div(rows, 128), columns_each = ceil_div(columns, 128);
  static_assert(4 * (columns + rows) <= store_buffer_bytes, "the scales of a tile fit a buffer");

  float of_row[rows_each], of_column[columns_each];

  // Of the rows and columns of the mainloop's tile: if turned, its rows are columns of D.
  template <class Tile>
  FUSELINE_DEVICE void load(const Block& block, const Tile& tile, int consumer) {
    const int thread = static_cast<int>(threadIdx.x % 128);
    const int first = tile.m + (Config::cooperative ? consumer * Config::rows_per_group : 0);
#pragma unroll
    for (int i = 0; i < rows_each; ++i) {
      const int r = first + min_of(thread + 128 * i, rows - 1);
      of_row[i] = Config::turned ? of_b(block, tile, r) : of_a(block, tile, r);
    }
#pragma unroll
    for (int i = 0; i < columns_each; ++i) {
      const int c = tile.n + min_of(thread + 128 * i, columns - 1);
      of_column[i] = Config::turned ? of_a(block, tile, c) : of_b(block, tile, c);
    }
  }

  template <class Accumulators, class Queue>
  FUSELINE_DEVICE void apply(Accumulators& acc, const Queue& queue) const {
    // Read anew, so that nothing that follows from it takes registers during the mainloop.
    int thread;
    asm volatile("mov.u32 %0, %%tid.x;" : "=r"(thread));
    thread %= 128;
    const u32 row_scales = queue.buffers + 4 * columns;
    tma_wait_read<0>();  // one lane of each warp has copies to wait for
    named_barrier(queue.barrier, 128);
#pragma unroll
    for (int i = 0; i < columns_each; ++i)
      if (const int c = thread + 128 * i; c < columns)
        store_shared(queue.buffers + 4 * c, of_column[i]);
#pragma unroll
    for (int i = 0; i < rows_each; ++i)
      if (const int r = thread + 128 * i; r < rows) store_shared(row_scales + 4 * r, of_row[i]);
    named_barrier(queue.barrier, 128);
#pragma unroll
    for (int s = 0; s < subtiles; ++s) {
      const u32 row = row_scales + 4 * (64 * s + thread / 32 * 16 + thread % 32 / 4);
      const float factors[2] = {load_shared_float(row), load_shared_float(row + 4 * 8)};
#pragma unroll
      for (int j = 0; j < columns / 8; ++j) {
        u32 low, high;
        load_shared(low, high, queue.buffers + 8 * (thread % 4) + 32 * j);
#pragma unroll
        for (int half = 0; half < 2; ++half) {
          float(&sums)[Config::tile_n / 2] = acc[s];
          const int i = 4 * j + 2 * half;
          // Products of two scales first would spill registers.
          sums[i] = sums[i] * factors[half] * __uint_as_float(low);
          sums[i + 1] = sums[i + 1] * factors[half] * __uint_as_float(high);
        }
      }
    }
    named_barrier(queue.barrier, 128);  // a warp may store into the buffers
  }

 private:
  // Rows and columns behind the last repeat it, and nobody stores what they become.
  template <class Tile>
  static FUSELINE_DEVICE float of_a(const Block& block, const Tile& tile, int row) {
    const CodeScales& s = block.args.scales;
    return __ldg(s.a + static_cast<long long>(min_of(row, tile.end - 1)) * s.a_ld);
  }
  template <class Tile>
  static FUSELINE_DEVICE float of_b(const Block& block, const Tile& tile, int column) {
    using Weight = typename Config::Weight;
    const CodeScales& s = block.args.scales;
    const int n = min_of(column, block.args.N - 1);
    const long long row =
        static_cast<long long>(Block::ragged ? tile.result : 0) * s.b_rows + Weight::scale_row(n);
    const float scale = load_scale<Weight::scale>(s.b, row * s.b_ld);
    if constexpr (Weight::tensor_scale) return scale * *s.tensor;
    return scale;
  }
};

}  // namespace fuseline::gpu
