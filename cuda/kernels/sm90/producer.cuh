// The producer of a Hopper GEMM: one thread that asks the copy engine for what the ring holds,
// steps of K and what an epilogue loads, in the order of ring_order.cuh.
#pragma once

#include "../launch_order.cuh"
#include "block.cuh"
#include "turned_tile.cuh"

namespace fuseline::gpu {

template <class Block>
struct Producer {
  using Config = typename Block::Config;
  using Epilogue = typename Block::Epilogue;
  using Place = typename Block::Place;
  static constexpr int cluster = Block::cluster, stages = Block::stages;
  static constexpr int ring_slabs = Block::ring_slabs;
  static constexpr bool batched = Block::batched, ragged = Block::ragged;
  static constexpr bool ragged_k = Block::ragged_k, shares_tail = Block::shares_tail;
  static constexpr bool turned = Block::turned;

  const Block& block;

  FUSELINE_DEVICE void run() const {
    Place place;
    RaggedTiles walk = block.ragged_tiles();
    TilePlace before{-1, 0};  // ping-pong: the tile whose slabs are due
    TileWalk<shares_tail> parts = block.walk_from(block.first_tile, block.tile_step);
    int ahead = Config::weights_first ? send_first_weights() : 0;  // steps whose weights are asked for
    for (TilePart part = parts.next(); part.tile >= 0; part = parts.next()) {
      const typename Block::Tile tile = block.corner(part.tile, walk);
      const int steps = shares_tail ? part.steps : block.steps_of(tile);
      for (int k = 0; k < steps; ++k) {
        if (Config::weights_first && ahead > 0) {
          --ahead;
          send_operands<Asked::others>(place, tile, part.first + k);
        } else {
          send_operands<Asked::all>(place, tile, part.first + k);
        }
        if (!Config::cooperative && k < ring_slabs && before.m >= 0) send_slab(place, before, k);
      }
      if (!Config::cooperative && before.m >= 0)
        for (int s = block.k_steps; s < ring_slabs; ++s) send_slab(place, before, s);
      if (Config::cooperative && (!shares_tail || block.is_last(part)))
        for (int s = 0; s < ring_slabs; ++s) send_slab(place, tile, s);
      before = tile;
    }
    if (!Config::cooperative && before.m >= 0 && block.finishes())
      for (int s = 0; s < ring_slabs; ++s) send_slab(place, before, s);
    // No block may leave while another can still say here that it has read a stage. A barrier of
    // the cluster would not do: it does not wait for the arrivals that are on their way.
    if constexpr (cluster > 1) {
      for (int s = 0; s < stages; ++s) {
        mbarrier_wait(block.empty(place.stage), place.parity ^ 1);
        place.next();
      }
    }
  }

 private:
  // Boxes of A's rows that a tile of a group has rows in.
  static constexpr int most_boxes = ragged ? Config::tile_m / Config::a_rows : 1;
  static constexpr int box_bytes = Block::a_bytes / most_boxes;
  static FUSELINE_DEVICE int boxes_of(const typename Block::Tile& tile) {
    return most_boxes == 1 ? 1 : min_of(ceil_div(tile.end - tile.m, Config::a_rows), most_boxes);
  }

  // What of a step's operands is asked for: the weights announce the bytes of both.
  enum class Asked { all, weights, others };
  static constexpr bool weights_are_a = turned;
  static FUSELINE_DEVICE constexpr bool asks(Asked asked, bool for_a) {
    return asked == Asked::all || (asked == Asked::weights) == (for_a == weights_are_a);
  }

  // Of as many steps of the first tile as the ring holds; then it waits for the kernel before.
  FUSELINE_DEVICE int send_first_weights() const {
    RaggedTiles walk = block.ragged_tiles();
    TileWalk<shares_tail> parts = block.walk_from(block.first_tile, block.tile_step);
    const TilePart part = parts.next();
    int steps = 0;
    if (part.tile >= 0) {
      const typename Block::Tile tile = block.corner(part.tile, walk);
      steps = min_of(shares_tail ? part.steps : block.steps_of(tile), stages);
      Place place;
      for (int k = 0; k < steps; ++k) send_operands<Asked::weights>(place, tile, part.first + k);
    }
    wait_for_the_kernel_before();
    return steps;
  }

  template <Asked asked>
  FUSELINE_DEVICE void send_operands(Place& place, const typename Block::Tile& tile,
                                     int step) const {
    const auto& args = block.args;
    int k = (block.first_step + step) * Config::tile_k;
    int product = tile.result;
    if constexpr (ragged_k) {
      k += args.groups.begin(tile.result);
    } else if constexpr (batched) {
      const int each = ceil_div(args.K, Config::tile_k);
      product = tile.result * args.batch.summed + step / each;
      k = step % each * Config::tile_k;
    }
    const u32 bar = block.full(place.stage);
    const int boxes = boxes_of(tile);
    if constexpr (asked != Asked::others) {
      mbarrier_wait(block.empty(place.stage), place.parity ^ 1);
      mbarrier_arrive_expect(bar, Block::stage_bytes - (most_boxes - boxes) * box_bytes);
    }
    const u32 a = block.stage_at(place.stage);
    const u32 b = a + Block::a_bytes;
    // A cluster's last blocks may have no tile. They multiply the last tile's rows again, and store
    // nothing: a panel of zeros from behind the matrix took longer to arrive.
    const int all = turned ? args.N : args.M;
    const int own = cluster > 1 && tile.m >= all ? (all - 1) / Config::tile_m * Config::tile_m : tile.m;
    const auto load_a = [&](u32 to, int x, int y) {
      if constexpr (batched && !ragged_k)
        tma_load(to, args.a, x, y, args.batch.a.head(product), args.batch.a.stack(product), bar);
      else if constexpr (Config::a_apart)
        tma_load(to, args.a, x, y % args.a_run, 0, y / args.a_run, bar);
      else
        tma_load(to, args.a, x, y, bar);
    };
    if constexpr (!asks(asked, true)) {
    } else if constexpr (Config::a_is_km) {
#pragma unroll
      for (int m = 0; m < Config::tile_m; m += 64) load_a(a + m * box_row_bytes, own + m, k);
    } else if constexpr (Config::half_boxes) {
#pragma unroll
      for (int half = 0; half < 2; ++half)
        load_a(a + half * Block::a_bytes / 2, k + half * Config::tile_k / 2, own);
    } else if constexpr (most_boxes > 1) {
#pragma unroll 1
      for (int box = 0; box < boxes; ++box)
        load_a(a + box * box_bytes, k, own + box * Config::a_rows);
    } else {
      load_a(a, k, own);
    }
    constexpr u16 everyone = (1 << cluster) - 1;
    const int share = cluster > 1 ? static_cast<int>(block.rank) * Config::b_box_rows : 0;
    const auto load_b = [&](u32 to, int x, int y) {
      if constexpr (ragged && Config::b_is_kn) {
        tma_load(to, args.b, x, y, 0, tile.result, bar);
      } else if constexpr (batched && !ragged_k) {
        const int head = args.batch.b.head(product), stack = args.batch.b.stack(product);
        if constexpr (cluster > 1)
          tma_load_multicast(to, args.b, x, y, head, stack, bar, everyone);
        else
          tma_load(to, args.b, x, y, head, stack, bar);
      } else if constexpr (cluster > 1) {
        tma_load_multicast(to, args.b, x, y, bar, everyone);
      } else {
        tma_load(to, args.b, x, y, bar);
      }
    };
    if constexpr (!asks(asked, false)) {
    } else if constexpr (Config::b_is_kn) {
#pragma unroll
      for (int n = 0; n < Config::tile_n; n += 64)
        load_b(b + (n + share) * box_row_bytes, tile.n + n, k + share);
    } else if constexpr (Config::half_boxes) {
#pragma unroll
      for (int half = 0; half < 2; ++half)
        load_b(b + half * Block::b_bytes / 2 + share * Block::operand_row_bytes,
               k + half * Config::tile_k / 2, tile.n + share);
    } else {
      const int matrix = ragged ? tile.result * args.N : 0;
      load_b(b + share * box_row_bytes, k, matrix + tile.n + share);
    }
    place.next();
  }

  FUSELINE_DEVICE void send_slab(Place& place, TilePlace tile, int slab) const {
    send_stage<0>(place, tile, slab);
    if constexpr (Block::slab_stages > 1) send_stage<1>(place, tile, slab);
  }
  template <int of_slab>
  FUSELINE_DEVICE void send_stage(Place& place, TilePlace tile, int slab) const {
    const u32 bar = block.full(place.stage);
    mbarrier_wait(block.empty(place.stage), place.parity ^ 1);
    FetchBytes<Block, of_slab> count;
    Epilogue::fetch(block.args.epilogue, count);
    mbarrier_arrive_expect(bar, count.bytes);
    Fetch<Block, of_slab> fetch{block.stage_at(place.stage), bar, tile.m,
                                tile.n + slab * slab_cols};
    if constexpr (turned) {
      fetch.row = tile.n;
      fetch.col = tile.m + TurnedTile<Block>::column_of_slab(slab);
    }
    Epilogue::fetch(block.args.epilogue, fetch);
    place.next();
  }
};

}  // namespace fuseline::gpu
