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
// They go through the store buffer that the epilogue writes next, which has half of a strip's rows:
// a buffer of their own would cost the ring a stage. Half h of a strip has the rows that a thread's
// half h of the warps' fragments wants (fragment.cuh):
//
//   rows       0 to 7   8 to 15   16 to 23   24 to 31   ...     each warp writes four eights of
//   half          0        1          0          1      ...     its 16 columns and reads eight
//   read by    warp 0   warp 0     warp 1     warp 1    ...     rows of all 64, and that twice
//
//   consumer 0: columns 0 to tile_m / 2 of the tile     of these, 64 after 64;
//   consumer 1: the others                              of these, 64 rows after 64 (a strip)
//
// Of a tile of 128 columns each consumer has 64. A sum along a row's 128 columns is then in both of
// them: consumer 1 gives its part to consumer 0 (Slab90::join_halves).
//
// The ring brings what the epilogue loads for 64 columns: first for consumer 0, then for consumer
// 1, and so on. Each lets the other's pass.
#pragma once

#include "layout.cuh"

namespace fuseline::gpu {

// A consumer's sums of one strip as wgmma leaves them: a warp has 16 columns, a thread for each of
// `groups` eights of rows two rows of two columns.
template <int groups_>
struct TurnedFragment {
  static constexpr int each = 2, groups = groups_, cols = 64;
  static_assert(groups % 2 == 0, "stmatrix writes two groups at once");
  float v[4 * groups];
};

template <int groups>
constexpr bool has_columns<TurnedFragment<groups>> = true;

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

template <class Block>
struct TurnedTile {
  using Config = typename Block::Config;
  using Epilogue = typename Block::Epilogue;
  static constexpr int subtiles = Config::subtiles, strips = Block::strips;
  static constexpr int slab_groups = Block::slab_groups;
  static constexpr int passes = 8 / slab_groups;

  const Block& block;
  int consumer;
  typename Block::Tile tile;
  int first_row;  // of the warp, in a strip

  // First column in the tile of what slab `index` of the ring brings.
  static FUSELINE_DEVICE int column_of_slab(int index) {
    return (index % 2 * subtiles + index / 2) * slab_cols;
  }

  template <class Accumulators, class States, class Place>
  FUSELINE_DEVICE void finish(const Accumulators& acc, States& state, Place& place,
                              StoreQueue& queue) const {
    if constexpr (rolls<Epilogue>)
      finish_in_a_loop(acc, state, place, queue);
    else
      finish_columns<0>(acc, state, place, queue);
  }

 private:
  // One copy of the epilogue's code for all columns and strips.
  template <class Accumulators, class States, class Place>
  FUSELINE_DEVICE void finish_in_a_loop(const Accumulators& acc, States& state, Place& place,
                                        StoreQueue& queue) const {
    static_assert(!only_stores<Epilogue>, "what only stores has little code");
#pragma unroll 1
    for (int subtile = 0; subtile < subtiles; ++subtile) {
      if constexpr (Block::has_loads)
        if (consumer == 1) pass_by(place);
      const SlabStages loads = wait_for_loads(place);
#pragma unroll 1
      for (int strip = 0; strip < strips; ++strip) {
        typename Epilogue::State rows;
        Fragment<2> y;
        EarlyOf<Epilogue> early[passes];
        begin_passes<0>(early, subtile * passes, strip, loads, queue);
        turn_chosen(acc, state, subtile, strip, queue, rows, y);
        run_passes<0>(y, rows, early, subtile * passes, strip, loads, queue);
        if constexpr (carries<Epilogue> && subtiles > 1) keep_chosen<0>(state, strip, rows);
      }
      if constexpr (Block::has_loads) {
        __syncwarp();
        release_loads(place);
        if (consumer == 0) pass_by(place);
      }
    }
  }
  // What comes from global memory comes while the sums turn.
  template <int pass>
  FUSELINE_DEVICE void begin_passes(EarlyOf<Epilogue> (&early)[passes], int first, int strip,
                                    const SlabStages& loads, StoreQueue& queue) const {
    if constexpr (pass < passes) {
      early[pass] = begin_loads<Epilogue>(block.args.epilogue,
                                          slab_of<pass>(first + pass, strip, loads, queue));
      begin_passes<pass + 1>(early, first, strip, loads, queue);
    }
  }
  template <int pass>
  FUSELINE_DEVICE void run_passes(const Fragment<2>& y, typename Epilogue::State& rows,
                                  const EarlyOf<Epilogue> (&early)[passes], int first, int strip,
                                  const SlabStages& loads, StoreQueue& queue) const {
    if constexpr (pass < passes) {
      run_epilogue<Epilogue>(block.args.epilogue, rows,
                             slab_of<pass>(first + pass, strip, loads, queue),
                             part_of_strip<pass>(y), early[pass]);
      run_passes<pass + 1>(y, rows, early, first, strip, loads, queue);
    }
  }
  // As `turn`, of a strip that is chosen at run time. Registers have no index then: each strip is a
  // case of its own, which writes its sums and takes what its rows have in common.
  template <class Accumulators, class States>
  FUSELINE_DEVICE void turn_chosen(const Accumulators& acc, const States& state, int subtile,
                                   int strip, const StoreQueue& queue,
                                   typename Epilogue::State& rows, Fragment<2>& y) const {
    const u32 buffer = buffer_of(queue);
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      named_barrier(queue.barrier, 128);
      write_chosen<0>(acc, state, subtile, strip, buffer, half, rows);
      named_barrier(queue.barrier, 128);
      read(buffer, half, y);
    }
    named_barrier(queue.barrier, 128);  // a warp may store into the buffer
  }
  // What goes on to the strip's next columns.
  template <int of_strip, class States>
  FUSELINE_DEVICE void keep_chosen(States& state, int strip,
                                   const typename Epilogue::State& rows) const {
    if constexpr (of_strip < strips) {
      if (strip == of_strip)
        state[of_strip] = rows;
      else
        keep_chosen<of_strip + 1>(state, strip, rows);
    }
  }
  template <int index, class Accumulators, class States>
  FUSELINE_DEVICE void write_chosen(const Accumulators& acc, const States& state, int subtile,
                                    int strip, u32 buffer, int half,
                                    typename Epilogue::State& rows) const {
    if constexpr (index < subtiles * strips) {
      constexpr int of_column = index / strips, of_strip = index % strips;
      if (subtile == of_column && strip == of_strip) {
        write(buffer, half, fragment_of<of_strip>(acc[of_column]));
        rows = state[of_strip];
      } else {
        write_chosen<index + 1>(acc, state, subtile, strip, buffer, half, rows);
      }
    }
  }

  template <int subtile, class Accumulators, class States, class Place>
  FUSELINE_DEVICE void finish_columns(const Accumulators& acc, States& state, Place& place,
                                      StoreQueue& queue) const {
    if constexpr (subtile < subtiles) {
      if constexpr (Block::has_loads)
        if (consumer == 1) pass_by(place);
      const SlabStages loads = wait_for_loads(place);
      finish_strips<subtile, 0>(acc[subtile], state, loads, queue);
      if constexpr (Block::has_loads) {
        __syncwarp();
        release_loads(place);
        if (consumer == 0) pass_by(place);
      }
      finish_columns<subtile + 1>(acc, state, place, queue);
    }
  }
  // The stages that a slab loads, which stay the place's until release_loads().
  template <class Place>
  FUSELINE_DEVICE SlabStages wait_for_loads(const Place& place) const {
    SlabStages loads{0, 0};
    if constexpr (Block::slab_stages > 0) {
      block.wait_full(place);
      loads.first = block.stage_at(place.stage);
    }
    if constexpr (Block::slab_stages > 1) {
      const Place second = place.after(1);
      block.wait_full(second);
      loads.second = block.stage_at(second.stage);
    }
    return loads;
  }
  template <class Place>
  FUSELINE_DEVICE void release_loads(Place& place) const {
#pragma unroll
    for (int i = 0; i < Block::slab_stages; ++i) {
      block.release(place.stage);
      place.next();
    }
  }
  // A slab of the other consumer. The wait keeps this release out of the stage's round before.
  template <class Place>
  FUSELINE_DEVICE void pass_by(Place& place) const {
#pragma unroll
    for (int i = 0; i < Block::slab_stages; ++i) {
      block.wait_full(place);
      block.release(place.stage);
      place.next();
    }
  }

  template <int subtile, int strip, class States>
  FUSELINE_DEVICE void finish_strips(const float (&acc)[Config::tile_n / 2], States& state,
                                     const SlabStages& loads, StoreQueue& queue) const {
    if constexpr (strip < strips) {
      const auto x = fragment_of<strip>(acc);
      if constexpr (only_stores<Epilogue>) {
        run_epilogue<Epilogue>(block.args.epilogue, state[strip],
                               slab<subtile, strip>(loads, queue), x);
      } else {
        finish_passes<subtile * passes, strip, 0>(turn(x, queue), state[strip], loads, queue);
      }
      finish_strips<subtile, strip + 1>(acc, state, loads, queue);
    }
  }
  template <int first, int strip, int pass>
  FUSELINE_DEVICE void finish_passes(const Fragment<2>& y, typename Epilogue::State& state,
                                     const SlabStages& loads, StoreQueue& queue) const {
    if constexpr (pass < passes) {
      run_epilogue<Epilogue>(block.args.epilogue, state, slab<first + pass, strip>(loads, queue),
                             part_of_strip<pass>(y));
      finish_passes<first, strip, pass + 1>(y, state, loads, queue);
    }
  }

  template <int strip>
  static FUSELINE_DEVICE auto fragment_of(const float (&acc)[Config::tile_n / 2]) {
    constexpr int groups = min_of(8, Block::tile_rows / 8 - 8 * strip);
    TurnedFragment<groups> x;
#pragma unroll
    for (int i = 0; i < 4 * groups; ++i) x.v[i] = acc[32 * strip + i];
    return x;
  }
  template <int pass>
  static FUSELINE_DEVICE Fragment<2, slab_groups> part_of_strip(const Fragment<2>& y) {
    Fragment<2, slab_groups> part;
#pragma unroll
    for (int i = 0; i < 4 * slab_groups; ++i) part.v[i] = y.v[4 * slab_groups * pass + i];
    return part;
  }

  // 16 rows × 64 columns in each warp, of the consumer's 64 rows × 64 columns.
  template <int groups>
  FUSELINE_DEVICE Fragment<2> turn(const TurnedFragment<groups>& x, const StoreQueue& queue) const {
    const u32 buffer = buffer_of(queue);
    Fragment<2> y;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      named_barrier(queue.barrier, 128);  // and so have the threads
      write(buffer, half, x);
      named_barrier(queue.barrier, 128);
      read(buffer, half, y);
    }
    named_barrier(queue.barrier, 128);  // a warp may store into the buffer
    return y;
  }
  // The store buffer that comes next, once the copy engine has read what a strip before left there.
  FUSELINE_DEVICE u32 buffer_of(const StoreQueue& queue) const {
    static_assert(store_buffer_bytes >= 32 * 64 * 4 && store_buffer_bytes % 128 == 0);
    if (threadIdx.x % 32 == 0) tma_wait_read<Block::store_buffers - 1>();
    return queue.buffers + queue.next * store_buffer_bytes;
  }
  template <int groups>
  FUSELINE_DEVICE void write(u32 buffer, int half, const TurnedFragment<groups>& x) const {
    const int lane = static_cast<int>(threadIdx.x % 32);
    const u32 first = recomputed(buffer + turned_write(first_row / 16, lane));
#pragma unroll
    for (int g = half; g < groups; g += 2)
#pragma unroll
      for (int i = 0; i < 4; ++i) store_shared(turned_write_from(first, g / 2, i), x.v[4 * g + i]);
  }
  FUSELINE_DEVICE void read(u32 buffer, int half, Fragment<2>& y) const {
    const int lane = static_cast<int>(threadIdx.x % 32);
    const u32 first = recomputed(buffer + turned_read(first_row / 16, lane));
#pragma unroll
    for (int g = 0; g < 8; ++g) {
      u32 low, high;
      load_shared(low, high, turned_read_from(first, g));
      y.at(half, g, 0) = __uint_as_float(low);
      y.at(half, g, 1) = __uint_as_float(high);
    }
  }
  // Hides where an address comes from: the compiler would keep those of all strips in registers.
  static FUSELINE_DEVICE u32 recomputed(u32 address) {
    asm volatile("" : "+r"(address));
    return address;
  }

  template <int index, int strip>
  FUSELINE_DEVICE Slab90<Block, index> slab(const SlabStages& loads, StoreQueue& queue) const {
    return slab_of<index>(index, strip, loads, queue);
  }
  // Slab `at` of the consumer's columns; in a loop, `index` is its place in the stage.
  template <int index>
  FUSELINE_DEVICE Slab90<Block, index> slab_of(int at, int strip, const SlabStages& loads,
                                               StoreQueue& queue) const {
    constexpr int cols = 8 * slab_groups;
    const int row = 64 * strip + first_row;
    const int col = tile.m + consumer * Config::rows_per_group + at * cols;
    return {{tile.n + row, col, tile.end, block.args.N, cols, tile.result},
            loads,
            row,
            strip,
            static_cast<int>(threadIdx.x) - 128,
            block.scratch(),
            &queue,
            at,
            block.args.M};
  }
};

}  // namespace fuseline::gpu
