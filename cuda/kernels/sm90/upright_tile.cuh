// The epilogue of tiles whose rows are the rows of the tensor cores' tile: a thread has the sums
// that the epilogue wants it to have.
#pragma once

#include "../epilogue/gather.cuh"
#include "block.cuh"

namespace fuseline::gpu {

template <class Block>
struct UprightTile {
  using Config = typename Block::Config;
  using Epilogue = typename Block::Epilogue;
  using Accumulators = typename Block::Accumulators;
  using States = typename Block::States;
  using Place = typename Block::Place;
  static constexpr int slabs = Block::slabs, slab_groups = Block::slab_groups;
  static constexpr int passes = 8 / slab_groups;
  static constexpr bool has_loads = Block::has_loads;

  const Block& block;
  typename Block::Tile tile;
  int first_row;  // of the warp, in the tile

  // `more`: whether this thread block has a tile behind it.
  FUSELINE_DEVICE void finish(Accumulators& acc, States& state, Place& place, StoreQueue& queue,
                              bool more) const {
    if constexpr (gathers_groups<Epilogue>) {
#pragma unroll
      for (int s = 0; s < Config::subtiles; ++s) gather<0>(acc[s], state[s], s, queue);
    }
    if constexpr (Block::loops)
      finish_in_a_loop(acc, state, place, queue, more);
    else
      finish_slabs<0>(acc, state, place, queue, more);
  }

 private:
  // One copy of the epilogue's code for all slabs.
  FUSELINE_DEVICE void finish_in_a_loop(Accumulators& acc, States& state, Place& place,
                                        StoreQueue& queue, bool more) const {
#pragma unroll 1
    for (int slab = 0; slab < slabs; ++slab) {
      const Place entry = Config::cooperative
                              ? place
                              : place.after(pingpong_slab_entry(slab, more ? block.k_steps : 0));
      if constexpr (has_loads) block.wait_full(entry);
      if constexpr (carries<Epilogue>)
        finish_strips<0>(acc, state, slab, entry.stage, queue);
      else
        finish_any_strip(acc, state, slab, entry.stage, queue);
      if constexpr (has_loads) {
        __syncwarp();
        block.release(entry.stage);
        if (Config::cooperative) place.next();
      }
    }
  }
  // A state that goes from slab to slab stays in its registers, which have no index at run time:
  // each strip has a copy of the code.
  template <int strip>
  FUSELINE_DEVICE void finish_strips(Accumulators& acc, States& state, int slab, u32 stage,
                                     StoreQueue& queue) const {
    if constexpr (strip < Config::subtiles) {
      finish_first<0>(acc[strip], state[strip], slab, stage, strip, queue);
      finish_strips<strip + 1>(acc, state, slab, stage, queue);
    }
  }
  // The slab whose sums come first. Those behind it move up: no registers for a copy beside the
  // state.
  template <int pass>
  FUSELINE_DEVICE void finish_first(float (&acc)[Config::tile_n / 2],
                                    typename Epilogue::State& state, int slab, u32 stage, int strip,
                                    StoreQueue& queue) const {
    if constexpr (pass < passes) {
      run_epilogue<Epilogue>(block.args.epilogue, state,
                             slab_of<pass>(slab * passes + pass, stage, strip, queue),
                             accumulated<pass>(acc));
      finish_first<pass + 1>(acc, state, slab, stage, strip, queue);
    } else {
#pragma unroll
      for (int i = 32; i < Config::tile_n / 2; ++i) acc[i - 32] = acc[i];
    }
  }
  FUSELINE_DEVICE void finish_any_strip(const Accumulators& acc, const States& state, int slab,
                                        u32 stage, StoreQueue& queue) const {
#pragma unroll 1
    for (int s = 0; s < Config::subtiles; ++s) {
      float sums[32];
      typename Epilogue::State rows;
      choose<0>(acc, state, slab, s, sums, rows);
      finish_passes<0>(sums, rows, stage, slab, s, queue);
    }
  }
  // The sums of a slab, and what its rows have in common. Registers have no index at run time: each
  // slab is a case of its own.
  template <int index>
  static FUSELINE_DEVICE void choose(const Accumulators& acc, const States& state, int slab,
                                     int strip, float (&sums)[32], typename Epilogue::State& rows) {
    if constexpr (index < slabs * Config::subtiles) {
      constexpr int s = index / slabs, first = index % slabs * 32;
      if (slab == index % slabs && strip == s) {
#pragma unroll
        for (int i = 0; i < 32; ++i) sums[i] = acc[s][first + i];
        rows = state[s];
      } else {
        choose<index + 1>(acc, state, slab, strip, sums, rows);
      }
    }
  }
  template <int pass>
  FUSELINE_DEVICE void finish_passes(const float (&sums)[32], typename Epilogue::State& rows,
                                     u32 stage, int slab, int strip, StoreQueue& queue) const {
    if constexpr (pass < passes) {
      Fragment<2, slab_groups> y;
#pragma unroll
      for (int i = 0; i < 4 * slab_groups; ++i) y.v[i] = sums[4 * slab_groups * pass + i];
      run_epilogue<Epilogue>(block.args.epilogue, rows,
                             slab_of<pass>(slab * passes + pass, stage, strip, queue), y);
      finish_passes<pass + 1>(sums, rows, stage, slab, strip, queue);
    }
  }

  // Slab after slab: registers cannot be indexed at run time.
  template <int slab>
  FUSELINE_DEVICE void finish_slabs(const Accumulators& acc, States& state, Place& place,
                                    StoreQueue& queue, bool more) const {
    if constexpr (slab < slabs) {
      const Place entry = Config::cooperative
                              ? place
                              : place.after(pingpong_slab_entry(slab, more ? block.k_steps : 0));
      if constexpr (has_loads) block.wait_full(entry);
#pragma unroll
      for (int s = 0; s < Config::subtiles; ++s)
        finish_row<slab * passes, passes>(acc[s], state[s], entry.stage, s, queue);
      if constexpr (has_loads) {
        __syncwarp();
        block.release(entry.stage);
        if (Config::cooperative) place.next();
      }
      finish_slabs<slab + 1>(acc, state, place, queue, more);
    }
  }
  // `passes` runs of the epilogue over the 64 columns of a stage.
  template <int index, int left>
  FUSELINE_DEVICE void finish_row(const float (&acc)[Config::tile_n / 2],
                                  typename Epilogue::State& state, u32 stage, int strip,
                                  StoreQueue& queue) const {
    if constexpr (left > 0) {
      run_epilogue<Epilogue>(block.args.epilogue, state, slab_at<index>(stage, strip, queue),
                             accumulated<index>(acc));
      finish_row<index + 1, left - 1>(acc, state, stage, strip, queue);
    }
  }

  // The pass ahead of the epilogue (epilogue/gather.cuh). It loads nothing by slabs.
  template <int index>
  FUSELINE_DEVICE void gather(const float (&acc)[Config::tile_n / 2],
                              typename Epilogue::State& state, int strip, StoreQueue& queue) const {
    if constexpr (index * 8 * slab_groups < Block::tile_cols) {
      Epilogue::gather(block.args.epilogue, state, slab_at<index>(0, strip, queue),
                       accumulated<index>(acc));
      gather<index + 1>(acc, state, strip, queue);
    }
  }

  template <int index>
  static FUSELINE_DEVICE Fragment<2, slab_groups> accumulated(
      const float (&acc)[Config::tile_n / 2]) {
    constexpr int values = 4 * slab_groups;  // per thread
    Fragment<2, slab_groups> y;
#pragma unroll
    for (int i = 0; i < values; ++i) y.v[i] = acc[values * index + i];
    return y;
  }
  template <int index>
  FUSELINE_DEVICE Slab90<Block, index> slab_at(u32 stage, int strip, StoreQueue& queue) const {
    return slab_of<index>(index, stage, strip, queue);
  }
  // Slab `at` of the tile. In a loop, what is known when the code is compiled is its place in the
  // stage: `index`, modulo the passes.
  template <int index>
  FUSELINE_DEVICE Slab90<Block, index> slab_of(int at, u32 stage, int strip,
                                               StoreQueue& queue) const {
    constexpr int cols = 8 * slab_groups;
    const int thread = static_cast<int>(threadIdx.x) - 128, row = first_row + 64 * strip;
    return {{tile.m + row, tile.n + at * cols, tile.end, block.args.N, cols, tile.result},
            {block.stage_at(stage), 0},
            row,
            strip,
            thread % Block::tile_threads,
            block.scratch() + (Config::cooperative ? 0 : thread / 128 * Block::tile_scratch_bytes),
            &queue,
            at,
            block.args.M};
  }
};

}  // namespace fuseline::gpu
