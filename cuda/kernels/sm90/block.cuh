// One thread block of a Hopper GEMM: where its shared memory lies, which tiles are its own, and the
// ring's barriers. The producer and the consumers have it in common.
#pragma once

#include "../raster.cuh"
#include "layout.cuh"
#include "tile_walk.cuh"

namespace fuseline::gpu {

template <class Config, class Epilogue>
struct Sm90Block : Sm90Layout<Config, Epilogue> {
  using Layout = Sm90Layout<Config, Epilogue>;
  using Args = typename Layout::Args;
  using Place = typename Layout::Place;
  using Layout::barrier_bytes, Layout::batched, Layout::blocks_of_cluster, Layout::cluster,
      Layout::cluster_k, Layout::queue_bytes, Layout::ragged, Layout::ragged_k,
      Layout::scratch_bytes, Layout::shares_tail, Layout::stage_bytes, Layout::stages,
      Layout::store_buffers, Layout::turned;

  const Args& args;
  u32 base;   // of shared memory
  u32 rank;   // in the cluster
  int group;  // warpgroup
  int first_step, k_steps, tiles_m, tiles_n, first_tile, tile_step;

  FUSELINE_DEVICE explicit Sm90Block(const Args& a, u32 shared)
      : args(a),
        base(shared),
        rank(blocks_of_cluster > 1 ? cluster_rank() : 0),
        group(__shfl_sync(0xffffffffU, static_cast<int>(threadIdx.x / 128), 0)),
        first_step(0),
        k_steps(ceil_div(a.K, Config::tile_k) * (batched ? a.batch.summed : 1)),
        tiles_m(ragged ? row_tiles(a.groups, Config::tile_m)
                       : ceil_div(turned ? a.N : a.M, Config::tile_m * cluster)),
        tiles_n(ceil_div(turned ? a.M : a.N, Config::tile_n)),
        first_tile(static_cast<int>(blockIdx.x) / blocks_of_cluster),
        tile_step(static_cast<int>(gridDim.x) / blocks_of_cluster) {
    if constexpr (cluster_k > 1) {
      const int part = static_cast<int>(rank), all = k_steps;
      first_step = part * all / cluster_k;
      k_steps = (part + 1) * all / cluster_k - first_step;
    }
  }

  FUSELINE_DEVICE u32 stage_at(u32 stage) const { return base + stage * stage_bytes; }
  FUSELINE_DEVICE u32 queue_at(int consumer) const {
    return base + stages * stage_bytes + consumer * store_buffers * store_buffer_bytes;
  }
  FUSELINE_DEVICE u32 scratch() const { return base + stages * stage_bytes + queue_bytes; }
  FUSELINE_DEVICE u32 full(u32 stage) const { return scratch() + scratch_bytes + 8 * stage; }
  FUSELINE_DEVICE u32 empty(u32 stage) const { return full(stage) + 8 * stages; }
  FUSELINE_DEVICE u32 sums() const { return scratch() + scratch_bytes + barrier_bytes; }
  FUSELINE_DEVICE bool finishes() const { return cluster_k == 1 || rank == 0; }  // has the epilogue

  // First row of A and of B that a tile has: its first row and column, or if turned its first
  // column and row. Of a batch, which product; of groups, which one. `end`: the row of D behind its
  // last one, or behind the last of all.
  struct Tile : TilePlace {
    int end;
  };
  // Who walks along the tiles, and what of the walk it remembers.
  FUSELINE_DEVICE RaggedTiles ragged_tiles() const {
    return {args.groups, Config::tile_m, tiles_n, args.raster_group};
  }
  // Tile t, for this block of the cluster.
  FUSELINE_DEVICE Tile corner(int t, RaggedTiles& walk) const {
    if constexpr (ragged) {
      const RaggedTile tile = walk.find(t);
      return {{tile.row, tile.column_tile * Config::tile_n, tile.group}, tile.end};
    }
    const int result = batched ? t / (tiles_m * tiles_n) : 0;
    const TilePlace p =
        grouped_tile(t - result * tiles_m * tiles_n, tiles_m, tiles_n, args.raster_group);
    const int below = cluster > 1 ? static_cast<int>(rank) : 0;
    const Tile tile{{(p.m * cluster + below) * Config::tile_m, p.n * Config::tile_n, result},
                    args.M};
    if constexpr (turned) return {tile, min_of(tile.n + Config::tile_n, args.M)};
    return tile;
  }
  FUSELINE_DEVICE int tiles() const {
    return tiles_m * tiles_n * (batched ? args.batch.results : 1);
  }
  FUSELINE_DEVICE int steps_of(const TilePlace& tile) const {
    return ragged_k ? ceil_div(args.groups.rows(tile.result), Config::tile_k) : k_steps;
  }

  // The parts of tiles from `first` on, every `step`-th tile.
  FUSELINE_DEVICE TileWalk<shares_tail> walk_from(int first, int step) const {
    const int of_tile = shares_tail ? args.tail.parts : 1;
    return {SharedTiles(tiles(), k_steps, tile_step, of_tile), first, step};
  }
  FUSELINE_DEVICE bool is_last(const TilePart& part) const {
    return part.first + part.steps == k_steps;
  }

  // ---- the ring ----

  FUSELINE_DEVICE void wait_full(const Place& place) const {
    mbarrier_wait(full(place.stage), place.parity);
  }

  FUSELINE_DEVICE void release(u32 stage) const {
    const u32 lane = threadIdx.x % 32;
    if constexpr (cluster > 1) {
      if (lane < cluster) mbarrier_arrive_remote(empty(stage), lane);
    } else {
      if (lane == 0) mbarrier_arrive(empty(stage));
    }
  }
};

}  // namespace fuseline::gpu
