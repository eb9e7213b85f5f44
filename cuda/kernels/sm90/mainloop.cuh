// The mainloop of a Hopper GEMM's consumers: waits for steps of K in the ring, multiplies them with
// wgmma into registers, and gives them back.
#pragma once

#include "../ptx/wgmma.cuh"
#include "block.cuh"

namespace fuseline::gpu {

template <class Block>
struct Mainloop {
  using Config = typename Block::Config;
  using Operand = typename Block::Operand;
  using Place = typename Block::Place;
  using Accumulators = typename Block::Accumulators;
  static constexpr int ring_slabs = Block::ring_slabs, tile_threads = Block::tile_threads;
  static constexpr int stage_bytes = Block::stage_bytes;
  static constexpr int a_bytes = Block::a_bytes, b_bytes = Block::b_bytes;
  static constexpr bool ragged_k = Block::ragged_k;

  const Block& block;

  // All `steps` of K of one tile, `rows_of_k` rows of which are its own if ragged_k. Returns the
  // stage of the last step, which is still being read.
  //
  // `foreign`: slabs of the other consumer lie between the first steps (ping-pong). A wait by
  // parity tells an entry of the ring from the one before it in the same stage, not from older
  // ones, and a slab may come later than younger steps. So we wait for the other's slabs too, each
  // before we release the step before it: until then its stage cannot be filled again.
  FUSELINE_DEVICE u32 run(Accumulators& acc, Place& place, int rows, bool foreign, int steps,
                          int rows_of_k) const {
    constexpr int row_bytes = Block::operand_row_bytes;
    const u32 first_a =
        wgmma_tile(block.base + rows * Config::rows_per_group * row_bytes, 64 * row_bytes);
    const u32 first_b = wgmma_tile(block.base + a_bytes, 64 * row_bytes);
    u32 last = 0;
    Place slab;
    if constexpr (ragged_k) {
      if (steps == 0) {
#pragma unroll
        for (int s = 0; s < Config::subtiles; ++s)
#pragma unroll
          for (float& x : acc[s]) x = 0.0F;
      }
    }
    for (int k = 0; k < steps; ++k) {
      const u32 stage = place.stage;
      block.wait_full(place);
      if constexpr (ragged_k) {
        const int left = rows_of_k - k * Config::tile_k;
        if (left < Config::tile_k) clear_rows(stage, left);
      }
      const u32 a = first_a + stage * (stage_bytes >> 4);
      const u32 b = first_b + stage * (stage_bytes >> 4);
      wgmma_fence();
#pragma unroll
      for (int i = 0; i < box_row_bytes / 32; ++i) {
        // 32 bytes within the rows, or 16 rows: 16 elements of K, or 32 codes.
        constexpr u32 a_step = Config::a_is_km ? 16 * box_row_bytes : 32;
        constexpr u32 b_step = Config::b_is_kn ? 16 * box_row_bytes : 32;
        const u32 of_a = Config::half_boxes ? i / 2 * (a_bytes / 2) + i % 2 * 32 : i * a_step;
        const u32 of_b = Config::half_boxes ? i / 2 * (b_bytes / 2) + i % 2 * 32 : i * b_step;
#pragma unroll
        for (int s = 0; s < Config::subtiles; ++s)
#pragma unroll
          for (int p = 0; p < Config::products; ++p)
            Wgmma<Operand, Config::product_n, Config::a_is_km, Config::b_is_kn, row_bytes>::run(
                part_of<Config::product_n / 2>(acc[s], p), a + ((s * 64 * row_bytes + of_a) >> 4),
                b + ((p * Config::product_n * row_bytes + of_b) >> 4), k > 0 || i > 0);
      }
      wgmma_commit();
      wgmma_wait<1>();  // this step stays under way; the step before it has been read
      if (foreign && 0 < k && k <= ring_slabs) block.wait_full(slab);
      if (k > 0) block.release(last);
      last = stage;
      place.next();
      if (foreign && k < ring_slabs) {
        slab = place;
        place.next();
      }
    }
    if (foreign && steps <= ring_slabs) {
      block.wait_full(slab);
      for (int s = steps; s < ring_slabs; ++s) {
        block.wait_full(place);
        place.next();
      }
    }
    return last;
  }

 private:
  // Rows of K from `first` on become zeros in a stage, for both consumers. Both read all of B.
  FUSELINE_DEVICE void clear_rows(u32 stage, int first) const {
    static_assert(!ragged_k || Config::a_rows == Config::tile_m, "boxes of 64 rows of K");
    constexpr int boxes = (Config::tile_m + Config::tile_n) / 64;
    const int chunks = (Config::tile_k - first) * (box_row_bytes / 16);  // of 16 bytes in a box
    for (int i = static_cast<int>(threadIdx.x) - 128; i < boxes * chunks; i += tile_threads)
      store_shared_16(block.stage_at(stage) + i / chunks * (Config::tile_k * box_row_bytes) +
                          first * box_row_bytes + i % chunks * 16,
                      make_uint4(0, 0, 0, 0));
    fence_to_async_proxy();
    named_barrier(clear_barrier, tile_threads);
  }
  static constexpr int clear_barrier = 6;
};

}  // namespace fuseline::gpu
