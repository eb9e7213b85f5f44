// Tiles whose rows are the columns of the tensor cores' tile.
//
// wgmma multiplies 64 rows of A with 8 to 256 rows of B. With the tokens as A, a product of 264
// rows pays for 320. A turned tile takes the weights as A and the tokens as B: D^T = B A^T. Its
// rows come in steps of 16, and the two thread blocks of a cluster share them by multicast.
//
// The epilogue is the same: it wants 16 rows × 64 columns of D in a warp. The sums come as 16
// columns × 64 rows of D, so they go through shared memory once, in fp32, and nothing is rounded on
// the way. Where an epilogue only stores the sums, stmatrix turns them as it writes the box.
//
//   consumer 0: columns 0 to tile_m / 2 of the tile     of these, 64 after 64;
//   consumer 1: the others                              of these, 64 rows after 64 (a strip)
//
// The ring brings what the epilogue loads for 64 columns: first for consumer 0, then for consumer
// 1, and so on. Each lets the other's pass.
#pragma once

#include "tile_io.cuh"

namespace fuseline::gpu {

// Whether an epilogue does nothing but store what was multiplied (epilogue/plain.cuh).
template <class Epilogue, class = void>
constexpr bool only_stores = false;
template <class Epilogue>
constexpr bool only_stores<Epilogue, decltype(void(Epilogue::only_stores))> = Epilogue::only_stores;

constexpr int turn_buffer_bytes = 64 * 64 * 4;  // of one consumer

// A consumer's sums of one strip as wgmma leaves them: a warp has 16 columns, a thread for each of
// `groups` eights of rows two rows of two columns.
template <int groups_>
struct TurnedFragment {
  static constexpr int each = 2, groups = groups_, cols = 64;
  static_assert(groups % 2 == 0, "stmatrix writes two groups at once");
  float v[4 * groups];
};

// The box of 64 rows × 64 columns; the warp has columns first_row onward.
template <class T, int groups>
FUSELINE_DEVICE void write_box(u32 box, u32 first_row, const TurnedFragment<groups>& x, int) {
  static_assert(sizeof(T) == 2, "stmatrix moves 16-bit numbers");
  const u32 lane = threadIdx.x % 32;
#pragma unroll
  for (int g = 0; g < groups; g += 2) {
    u32 words[4];
#pragma unroll
    for (int w = 0; w < 4; ++w) words[w] = pack<T>(x.v[4 * g + 2 * w], x.v[4 * g + 2 * w + 1]);
    stmatrix_x4_transposed(
        box + swizzle<box_row_bytes>(8 * (g + lane / 16) + lane % 8, first_row / 8 + lane / 8 % 2),
        words);
  }
}

template <class Gemm>
struct TurnedTile {
  using Config = typename Gemm::Config_;
  using Epilogue = typename Gemm::Epilogue_;
  static constexpr int subtiles = Config::subtiles, strips = Gemm::strips;
  static constexpr int slab_groups = Gemm::slab_groups;
  static constexpr int passes = 8 / slab_groups;

  const Gemm& gemm;
  int consumer;
  typename Gemm::Tile tile;
  int first_row;  // of the warp, in a strip

  // First column in the tile of what slab `index` of the ring brings.
  static FUSELINE_DEVICE int column_of_slab(int index) {
    return (index % 2 * subtiles + index / 2) * slab_cols;
  }

  template <class Accumulators, class States, class Place>
  FUSELINE_DEVICE void finish(const Accumulators& acc, States& state, Place& place,
                              StoreQueue& queue) const {
    finish_columns<0>(acc, state, place, queue);
  }

 private:
  template <int subtile, class Accumulators, class States, class Place>
  FUSELINE_DEVICE void finish_columns(const Accumulators& acc, States& state, Place& place,
                                      StoreQueue& queue) const {
    if constexpr (subtile < subtiles) {
      u32 stage = 0;
      if constexpr (Gemm::has_loads) {
        if (consumer == 1) pass_by(place);
        gemm.wait_full(place);
        stage = place.stage;
      }
      finish_strips<subtile, 0>(acc[subtile], state, stage, queue);
      if constexpr (Gemm::has_loads) {
        __syncwarp();
        gemm.release(stage);
        place.next();
        if (consumer == 0) pass_by(place);
      }
      finish_columns<subtile + 1>(acc, state, place, queue);
    }
  }
  // A slab of the other consumer. The wait keeps this release out of the stage's round before.
  template <class Place>
  FUSELINE_DEVICE void pass_by(Place& place) const {
    gemm.wait_full(place);
    gemm.release(place.stage);
    place.next();
  }

  template <int subtile, int strip, class States>
  FUSELINE_DEVICE void finish_strips(const float (&acc)[Config::tile_n / 2], States& state,
                                     u32 stage, StoreQueue& queue) const {
    if constexpr (strip < strips) {
      constexpr int groups = min_of(8, Gemm::tile_rows / 8 - 8 * strip);
      TurnedFragment<groups> x;
#pragma unroll
      for (int i = 0; i < 4 * groups; ++i) x.v[i] = acc[32 * strip + i];
      if constexpr (only_stores<Epilogue>) {
        Epilogue::run(gemm.args.epilogue, state[strip], slab<subtile, strip>(stage, queue), x);
      } else {
        named_barrier(queue.barrier, 128);  // the strip before has been read
        write(x);
        named_barrier(queue.barrier, 128);
        finish_passes<subtile * passes, strip, passes>(state[strip], stage, queue);
      }
      finish_strips<subtile, strip + 1>(acc, state, stage, queue);
    }
  }
  template <int index, int strip, int left>
  FUSELINE_DEVICE void finish_passes(typename Epilogue::State& state, u32 stage,
                                     StoreQueue& queue) const {
    if constexpr (left > 0) {
      Epilogue::run(gemm.args.epilogue, state, slab<index, strip>(stage, queue),
                    read(index % passes * slab_groups));
      finish_passes<index + 1, strip, left - 1>(state, stage, queue);
    }
  }

  template <int groups>
  FUSELINE_DEVICE void write(const TurnedFragment<groups>& x) const {
    const int lane = static_cast<int>(threadIdx.x % 32);
    // Eight rows further down the columns lie in the same order.
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int row = lane % 4 * 2 + i % 2, col = first_row + lane / 4 + i / 2 * 8;
      const u32 at = gemm.turn_at(consumer) + 4 * turned_place(row, col);
#pragma unroll
      for (int g = 0; g < groups; ++g) store_shared(at + 4 * g * 8 * 64, x.v[4 * g + i]);
    }
  }
  // The warp's 16 rows; columns from 8 · first_group on.
  FUSELINE_DEVICE Fragment<2, slab_groups> read(int first_group) const {
    const int lane = static_cast<int>(threadIdx.x % 32);
    Fragment<2, slab_groups> y;
    // So do the next four groups of columns.
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const u32 at = gemm.turn_at(consumer) +
                     4 * turned_place(first_row + lane / 4, 8 * (first_group + i) + lane % 4 * 2);
#pragma unroll
      for (int g = i; g < slab_groups; g += 4)
#pragma unroll
        for (int half = 0; half < 2; ++half) {
          u32 low, high;
          load_shared(low, high, at + 4 * (half * 8 * 64 + (g - i) * 8));
          y.at(half, g, 0) = __uint_as_float(low);
          y.at(half, g, 1) = __uint_as_float(high);
        }
    }
    return y;
  }

  template <int index, int strip>
  FUSELINE_DEVICE Slab90<Gemm, index> slab(u32 stage, StoreQueue& queue) const {
    constexpr int cols = 8 * slab_groups;
    const int row = 64 * strip + first_row;
    const int col = tile.m + consumer * Config::rows_per_group + index * cols;
    return {{tile.n + row, col, tile.end, gemm.args.N, cols, tile.result},
            gemm.stage_at(stage),
            row,
            strip,
            static_cast<int>(threadIdx.x) - 128,
            gemm.scratch(),
            &queue};
  }
};

}  // namespace fuseline::gpu
