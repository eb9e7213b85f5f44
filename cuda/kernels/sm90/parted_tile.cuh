// A tile that is cut along K (tile_walk.cuh) and whose sums are only stored: all thread blocks that
// made a part of it add it up together.
//
// With one adder a tile in twelve parts waits for eleven tiles of fp32 that come into one
// multiprocessor. Here every block leaves its part in the workspace, and once all parts of the tile
// are there it adds up a share of the tile's columns (of a turned tile: rows), part after part in
// the order of K, and stores it. So the sums are the same from run to run.
//
// A block does this behind all tiles and parts of its own. It then waits for blocks that wait for
// nobody before they have left theirs, and all blocks of the grid run at once.
#pragma once

#include "../epilogue/operands.cuh"
#include "../epilogue/store.cuh"
#include "../ptx/matrix.cuh"
#include "../ptx/sync.cuh"
#include "tail_sums.cuh"
#include "tile_walk.cuh"

namespace fuseline::gpu {

// What a thread has of 16 x 8 sums of the tensor cores' tile: two neighbours of a row, and those of
// the row eight below.
struct PartedSums {
  float v[4];
};

// Where they lie in D: the thread's first row and column. Turned: of the transpose, that is the
// first row and column of the warp's 8 rows x 16 columns.
template <bool turned>
struct PartedPlace {
  int row, col;
  int rows;  // of D, or up to the end of the tile
};

template <bool across, class T>
FUSELINE_DEVICE void put_tile(StoreMode<false, across>, const TileOut<T>& to,
                              const PartedPlace<false>& at, const PartedSums& x) {
  if (at.col >= to.cols) return;
#pragma unroll
  for (int half = 0; half < 2; ++half)
    if (at.row + 8 * half < at.rows)
      *reinterpret_cast<u32*>(to.data + static_cast<long long>(at.row + 8 * half) * to.ld +
                              at.col) = pack<T>(x.v[2 * half], x.v[2 * half + 1]);
}

template <bool across, class T>
FUSELINE_DEVICE void put_tile(StoreMode<false, across>, const TileOut<T>& to,
                              const PartedPlace<true>& at, const PartedSums& x) {
  const int lane = static_cast<int>(threadIdx.x % 32);
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const u32 word = transposed(pack<T>(x.v[2 * half], x.v[2 * half + 1]));
    const int row = at.row + lane / 4, col = at.col + 8 * half + lane % 4 * 2;
    if (row < at.rows && col < to.cols)
      *reinterpret_cast<u32*>(to.data + static_cast<long long>(row) * to.ld + col) = word;
  }
}

template <class Block>
struct PartedTile {
  using Config = typename Block::Config;
  using Epilogue = typename Block::Epilogue;
  static constexpr int quads = Config::tile_n / 8;  // float4 of a thread's sums of 64 rows
  // Of 64 rows x 8 columns of the tensor cores' tile, one warpgroup's work at a time.
  static constexpr int pieces = 2 * Config::subtiles * quads;

  const Block& block;
  const SharedTiles& all;
  int consumer;

  // The sums of one part, in the order of the pieces.
  template <class Accumulators>
  FUSELINE_DEVICE void leave(const Accumulators& acc, const TilePart& part, int barrier) const {
#pragma unroll
    for (int s = 0; s < Config::subtiles; ++s) {
      float4* to = sums_of(part.number) + (consumer * Config::subtiles + s) * quads * 128;
#pragma unroll
      for (int q = 0; q < quads; ++q)
        to[q * 128] =
            make_float4(acc[s][4 * q], acc[s][4 * q + 1], acc[s][4 * q + 2], acc[s][4 * q + 3]);
    }
    __threadfence();
    named_barrier(barrier, 128);
    if (threadIdx.x % 128 == 0)
      asm volatile("red.release.gpu.global.add.u32 [%0], 1;" ::"l"(ready_of(part.tile)) : "memory");
  }

  // This block's share of the tile that it has part `number` of.
  FUSELINE_DEVICE void finish(int number, const typename Block::Tile& tile, int barrier) const {
    const int slice = number / all.rest, of_all = number - slice * all.rest;
    wait_for_parts(ready_of(of_all));
    named_barrier(barrier, 128);
    const PieceRange share = share_of(slice, all.parts, pieces);
    // As many loads under way as there are registers for.
    if (all.parts <= 2)
      add_up<8, 2>(tile, of_all, share);
    else if (all.parts <= 4)
      add_up<4, 4>(tile, of_all, share);
    else
      add_up<2, 8>(tile, of_all, share);
  }

 private:
  // Thread by thread; of part `number`, or of tile `number` of those that are shared in its first
  // part.
  FUSELINE_DEVICE float4* sums_of(int number) const {
    const auto place = static_cast<u64>(number * Block::cluster + static_cast<int>(block.rank));
    return reinterpret_cast<float4*>(block.args.tail.sums) + place * (pieces * 128) +
           threadIdx.x % 128;
  }
  FUSELINE_DEVICE u32* ready_of(int tile) const {
    return block.args.tail.ready + tile * Block::cluster + static_cast<int>(block.rank);
  }

  // Two warpgroups of every part count up when they have left theirs, and again when they have
  // seen that all have. The last one leaves a zero for the next launch.
  FUSELINE_DEVICE void wait_for_parts(u32* ready) const {
    if (threadIdx.x % 128 != 0) return;
    const u32 left = 2 * static_cast<u32>(all.parts);
    u32 count = 0;
    do asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(count) : "l"(ready) : "memory");
    while (count < left);
    asm volatile("atom.relaxed.gpu.global.add.u32 %0, [%1], 1;"
                 : "=r"(count)
                 : "l"(ready)
                 : "memory");
    if (count == 2 * left - 1)
      asm volatile("st.relaxed.gpu.global.u32 [%0], 0;" ::"l"(ready) : "memory");
  }

  // Every other piece of the share: `together` of them at once, and of each the sums of
  // `at_once` parts under way.
  template <int together, int at_once>
  FUSELINE_DEVICE void add_up(const typename Block::Tile& tile, int of_all,
                              const PieceRange& share) const {
    const int last = share.last;
    const float4* const sums = sums_of(of_all);
    const u64 next_part = static_cast<u64>(all.rest * Block::cluster) * (pieces * 128);
#pragma unroll 1
    for (int piece = share.first + consumer; piece < last; piece += 2 * together) {
      float4 sum[together];
#pragma unroll
      for (int i = 0; i < together; ++i) sum[i] = make_float4(0, 0, 0, 0);
#pragma unroll 1
      for (int part = 0; part < all.parts; part += at_once) {
        float4 v[together][at_once];
#pragma unroll
        for (int i = 0; i < together; ++i)
#pragma unroll
          for (int p = 0; p < at_once; ++p) {
            v[i][p] = make_float4(0, 0, 0, 0);
            if (piece + 2 * i < last && part + p < all.parts)  // not from L1: an older launch's
              v[i][p] = __ldcg(sums + (part + p) * next_part + (piece + 2 * i) * 128);
          }
#pragma unroll
        for (int i = 0; i < together; ++i)
#pragma unroll
          for (int p = 0; p < at_once; ++p) {
            sum[i].x += v[i][p].x;
            sum[i].y += v[i][p].y;
            sum[i].z += v[i][p].z;
            sum[i].w += v[i][p].w;
          }
      }
#pragma unroll
      for (int i = 0; i < together; ++i)
        if (piece + 2 * i < last) store(tile, piece + 2 * i, sum[i]);
    }
  }

  FUSELINE_DEVICE void store(const typename Block::Tile& tile, int piece, const float4& sum) const {
    const int strip = piece / quads, column = piece % quads * 8;
    const int row = strip / Config::subtiles * Config::rows_per_group +
                    strip % Config::subtiles * 64 + static_cast<int>(threadIdx.x) % 128 / 32 * 16;
    const int lane = static_cast<int>(threadIdx.x % 32);
    typename Epilogue::State state;
    const PartedSums x{{sum.x, sum.y, sum.z, sum.w}};
    if constexpr (Config::turned)
      run_epilogue<Epilogue>(block.args.epilogue, state,
                             PartedPlace<true>{tile.n + column, tile.m + row, tile.end}, x);
    else
      run_epilogue<Epilogue>(
          block.args.epilogue, state,
          PartedPlace<false>{tile.m + row + lane / 4, tile.n + column + lane % 4 * 2, tile.end}, x);
  }
};

}  // namespace fuseline::gpu
