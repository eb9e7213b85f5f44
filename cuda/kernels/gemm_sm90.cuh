// The product's Hopper mainloop: D[M, N] = A[M, K] B[N, K]^T, then an epilogue.
//
// One thread block per SM stays for the whole problem (persistent) and takes every n-th tile.
// Warpgroup 0 is the producer: one of its threads asks the copy engine for tiles of A and B, stage
// after stage of a ring in shared memory. Warpgroups 1 and 2 are consumers: they wait for a stage,
// multiply it with wgmma into registers, and give it back. Thread blocks of a cluster sit below
// each other: they share the tile of B, so each loads a part of it and sends it to all (multicast).
//
//   cooperative: both consumers on one tile, each half of its rows. Largest tiles, fewest bytes.
//   ping-pong:   each consumer has a tile of its own; one multiplies while the other is in its
//                epilogue.
//   shares_tail: the tiles of the last rounds are shared along K, so that all thread blocks end
//                together (sm90/tile_walk.cuh). Who has the last part of a tile adds up; where the
//                epilogue only stores, all who have one do (sm90/parted_tile.cuh). Cooperative only.
//   turned:      A and B change places, so that a tile's rows come in steps of 16 and the blocks of
//                a cluster share the rows of A (sm90/turned_tile.cuh). Cooperative only.
//   cluster_k:   for few rows and so few tiles. The blocks of a cluster have one tile together and
//                a part of K each; the first adds up what the others put into its shared memory.
//
// Operands are 16-bit, or both are e4m3 codes with a scale for every row (Sm90CodesConfig); A is [M, K] or [K, M], B is [N, K] or [K, N]; rows start at multiples of 16
// bytes. The copy engine fills what lies outside with zeros and drops stores there, so M, N and K
// are arbitrary. With `batched` there are many such products (batch.cuh), tiles of all of them in
// one row. With `ragged` the rows of A and D lie in groups, and group g is multiplied with rows
// g · N onward of B, or g · K onward where B is [K, N] (ragged.cuh): the copy engine stores boxes
// whose rows are all the group's, and threads store the others. With `ragged_k` the groups lie
// along K: product g of the batch sums their rows. A group's last step brings rows of the next
// group too, of which the consumers make zeros.
#pragma once

#include "launch_order.cuh"
#include "epilogue/gather.cuh"
#include "epilogue/store.cuh"
#include "fragment.cuh"
#include "sm90/block.cuh"
#include "sm90/cluster_sum.cuh"
#include "sm90/mainloop.cuh"
#include "sm90/parted_tile.cuh"
#include "sm90/producer.cuh"
#include "sm90/sum_scales.cuh"
#include "sm90/turned_tile.cuh"
#include "sm90/upright_tile.cuh"

namespace fuseline::gpu {

template <class Config, class Epilogue>
struct Sm90Gemm : Sm90Block<Config, Epilogue> {
  using Block = Sm90Block<Config, Epilogue>;
  using Block::args, Block::first_tile, Block::group, Block::k_steps, Block::rank, Block::tile_step;
  using Block::adds_together, Block::batched, Block::cluster, Block::cluster_k, Block::ragged, Block::ragged_k,
      Block::shares_tail, Block::stages, Block::strips, Block::turned;
  using Block::corner, Block::empty, Block::finishes, Block::full, Block::is_last, Block::release,
      Block::tiles;
  using typename Block::Accumulators, typename Block::Place, typename Block::States,
      typename Block::Tile;

  FUSELINE_DEVICE explicit Sm90Gemm(const typename Block::Args& a, u32 shared) : Block(a, shared) {}

  FUSELINE_DEVICE void run() {
    if constexpr (!Config::weights_first) wait_for_the_kernel_before();
    if (ragged && first_tile >= tiles()) {  // launched for the most that there can be
      if constexpr (Config::weights_first) wait_for_the_kernel_before();
      return;
    }
    if (threadIdx.x == 0) {
      tma_prefetch_map(args.a);
      tma_prefetch_map(args.b);
      // A stage is full when the producer has announced its bytes and they have come; it is empty
      // when every warp that reads it, in every block that its bytes went to or came from, says so.
      const int readers = (Config::cooperative ? 8 : 4) * cluster;
      for (int s = 0; s < stages; ++s) {
        mbarrier_init(full(s), 1);
        mbarrier_init(empty(s), readers);
      }
      mbarrier_init_fence();
    }
    if constexpr (Block::blocks_of_cluster > 1)
      cluster_sync_relaxed();
    else
      __syncthreads();

    if (group == 0) {
      keep_registers<Block::producer_registers>();
      if (threadIdx.x == 0) Producer<Block>{*this}.run();
    } else {
      take_registers<Block::consumer_registers>();
      consume(group - 1);
    }
    // The first consumer, who has the block's tile, comes to this barrier in add_up().
    if constexpr (cluster_k > 1)
      if (group != 1) cluster_arrive();
  }

  FUSELINE_DEVICE void consume(int consumer) const {
    if constexpr (Config::weights_first) wait_for_the_kernel_before();
    Place place;
    StoreQueue queue{Block::queue_at(consumer), 1 + consumer};
    int t = first_tile;
    int step = tile_step;
    bool first = true;  // of the block's tiles
    if constexpr (!Config::cooperative) {
      step *= 2;
      if (consumer == 1) {
        t += tile_step;
        place = place.after(k_steps);
        first = false;
        named_barrier_arrive(turn_of(0), 256);
      }
    }
    const int row_in_tile =
        (Config::cooperative && !turned ? consumer * Config::rows_per_group : 0) +
        static_cast<int>(threadIdx.x % 128) / 32 * 16;
    RaggedTiles walk = Block::ragged_tiles();
    TileWalk<shares_tail> parts = Block::walk_from(t, step);
    for (TilePart part = parts.next(); part.tile >= 0; part = parts.next()) {
      const Tile tile = corner(part.tile, walk);
      States state;
#pragma unroll
      for (int s = 0; s < strips; ++s)
        Epilogue::begin(
            args.epilogue, state[s],
            SlabPlace{(turned ? tile.n : tile.m) + row_in_tile + 64 * s, 0, tile.end, args.N, 0});

      Accumulators acc;
      const bool more = part.tile + tile_step < tiles();
      // Consumers of ping-pong enter their mainloops in turn, or one would wait for entries that
      // are rounds of the ring ahead.
      if (!Config::cooperative) named_barrier(turn_of(consumer), 256);
      const int steps = shares_tail ? part.steps : Block::steps_of(tile);
      const u32 last = Mainloop<Block>{*this}.run(acc, place, Config::cooperative ? consumer : 0,
                                                  !Config::cooperative && !first, steps,
                                                  ragged_k ? args.groups.rows(tile.result) : 0);
      first = false;
      if (!Config::cooperative && more) named_barrier_arrive(turn_of(1 - consumer), 256);
      // While the last step is multiplied.
      [[maybe_unused]] SumScales<Block> scales;
      if constexpr (Config::scaled) scales.load(*this, tile, consumer);
      wgmma_wait<0>();
#pragma unroll
      for (int s = 0; s < Config::subtiles; ++s) wgmma_pin(acc[s]);
      if (!ragged_k || steps > 0) release(last);

      if constexpr (cluster_k > 1)
        add_up<cluster_k>(acc[0], Block::sums(), Block::sum_bytes, rank,
                          tile.m + row_in_tile < args.M);
      if constexpr (adds_together) {
        if (part.steps < k_steps) {
          PartedTile<Block>{*this, parts.all, consumer}.leave(acc, part, tail_barrier + consumer);
          continue;
        }
      } else if constexpr (shares_tail) {
        if (part.steps < k_steps) share_sums(acc, parts.all, part, consumer);
        if (!is_last(part)) continue;
      }
      if (finishes()) {
        if constexpr (Config::scaled) scales.apply(acc, queue);
        if constexpr (turned)
          TurnedTile<Block>{*this, consumer, tile, row_in_tile}.finish(acc, state, place, queue);
        else
          UprightTile<Block>{*this, tile, row_in_tile}.finish(acc, state, place, queue, more);
      }
      if constexpr (!Config::cooperative) {
        place = place.after((more ? k_steps : 0) + Block::ring_slabs);
      }
    }
    if constexpr (adds_together)
      for (int number = t; number < parts.all.rest * parts.all.parts; number += step)
        PartedTile<Block>{*this, parts.all, consumer}.finish(
            number, corner(number % parts.all.rest, walk), tail_barrier + consumer);
    if (threadIdx.x % 32 == 0) tma_wait<0>();  // the buffers must outlive the copies
  }

  // The sums of a part of a tile. Those of its last part leave with all others' added, in the order
  // of the parts, whenever they come.
  FUSELINE_DEVICE void share_sums(Accumulators& acc, const SharedTiles& all, const TilePart& part,
                                  int consumer) const {
    constexpr int count = Config::tile_n / 2;
    const auto place = [&](int number, int subtile) {
      const int block = number * cluster + static_cast<int>(rank);
      return TailPlace<count>(args.tail, (block * 2 + consumer) * Config::subtiles + subtile);
    };
    const int barrier = tail_barrier + consumer;
#pragma unroll
    for (int s = 0; s < Config::subtiles; ++s) {
      if (is_last(part))
        for (int number = part.tile; number < part.number; number += all.rest)
          place(number, s).add(acc[s], barrier);
      else
        place(part.number, s).leave(acc[s], barrier);
    }
  }
  static constexpr int tail_barrier = 7;  // and 8

  static FUSELINE_DEVICE int turn_of(int consumer) { return 4 + consumer; }
};

// The body of a kernel with __launch_bounds__(384, 1),
// __cluster_dims__(Sm90Gemm::blocks_of_cluster) and Sm90Gemm::shared_bytes of dynamic shared
// memory. With cluster_k: a cluster for every tile.
template <class Config, class Args>
FUSELINE_DEVICE void gemm_sm90(const Args& args) {
  extern __shared__ __align__(1024) unsigned char shared[];
  Sm90Gemm<Config, typename Args::Epilogue>(args, shared_address(shared)).run();
}

}  // namespace fuseline::gpu
