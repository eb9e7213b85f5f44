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
//                together (sm90/tile_walk.cuh). Cooperative only.
//   turned:      A and B change places, so that a tile's rows come in steps of 16 and the blocks of
//                a cluster share the rows of A (sm90/turned_tile.cuh). Cooperative only.
//   cluster_k:   for few rows and so few tiles. The blocks of a cluster have one tile together and
//                a part of K each; the first adds up what the others put into its shared memory.
//
// Operands are 16-bit; A is [M, K] or [K, M], B is [N, K] or [K, N]; rows start at multiples of 16
// bytes. The copy engine fills what lies outside with zeros and drops stores there, so M, N and K
// are arbitrary. With `batched` there are many such products (batch.cuh), tiles of all of them in
// one row. With `ragged` the rows of A and D lie in groups, and group g is multiplied with rows
// g · N onward of B, or g · K onward where B is [K, N] (ragged.cuh): the copy engine stores boxes
// whose rows are all the group's, and threads store the others. With `ragged_k` the groups lie
// along K: product g of the batch sums their rows. A group's last step brings rows of the next
// group too, of which the consumers make zeros.
#pragma once

#include "epilogue/gather.cuh"
#include "epilogue/store.cuh"
#include "fragment.cuh"
#include "ptx/wgmma.cuh"
#include "raster.cuh"
#include "sm90/cluster_sum.cuh"
#include "sm90/config.cuh"
#include "sm90/ring_order.cuh"
#include "sm90/tile_io.cuh"
#include "sm90/tile_walk.cuh"
#include "sm90/turned_tile.cuh"

namespace fuseline::gpu {

template <class Config, class Epilogue>
struct Sm90Gemm {
  using Args = Sm90Args<Epilogue>;
  using Config_ = Config;
  using Epilogue_ = Epilogue;
  using Element = typename Config::Element;
  static constexpr int threads = 384;
  static constexpr int cluster = Config::cluster;      // along M
  static constexpr int cluster_k = Config::cluster_k;  // along K
  static constexpr int blocks_of_cluster = cluster * cluster_k;
  static constexpr bool batched = Config::batched;
  static constexpr bool ragged = Config::ragged;
  static constexpr bool ragged_k = Config::ragged_k;
  static constexpr bool shares_tail = Config::shares_tail;
  static constexpr bool turned = Config::turned;

  // The tile as the epilogue sees it.
  static constexpr int tile_rows = turned ? Config::tile_n : Config::tile_m;
  static constexpr int tile_cols = turned ? Config::rows_per_group : Config::tile_n;
  static constexpr int tile_threads = Config::cooperative ? 256 : 128;
  static constexpr int strips = turned ? ceil_div(tile_rows, 64) : Config::subtiles;
  static constexpr int strips_per_warp = strips;
  // A box of 64 rows may hold rows that are no longer the tile's.
  static constexpr bool clips_rows = ragged || (turned && tile_rows % 64 != 0);
  static constexpr int slabs = (turned ? Config::tile_m : tile_cols) / slab_cols;
  static constexpr int slab_groups = Epilogue::slab_groups;
  static constexpr bool has_loads = Epilogue::tile_loads + Epilogue::col_loads > 0;
  static constexpr int ring_slabs = has_loads ? slabs : 0;
  static constexpr int box_bytes = tile_rows * box_row_bytes;

  // Shared memory: stages | store buffers | scratch | barriers | partial sums of the other blocks.
  static constexpr int a_bytes = Config::a_rows * Config::tile_k * 2;
  static constexpr int b_bytes = Config::tile_n * Config::tile_k * 2;
  static constexpr int stage_bytes = a_bytes + b_bytes;
  static constexpr int cols_offset = stage_bytes - Epilogue::col_loads * cols_in_bytes;
  static_assert(Epilogue::tile_loads * box_bytes <= cols_offset, "a slab's loads exceed a stage");
  static constexpr int most_bytes = 227 * 1024;
  // One strip of rows after the other: column reductions need not wait with their scratch.
  static constexpr int scratch_step = strips_per_warp > 1 ? Epilogue::scratch_bytes : 0;
  static constexpr int tile_scratch_bytes =
      strips_per_warp > 1 ? most_column_reductions* scratch_step : Epilogue::scratch_bytes;
  static constexpr int scratch_bytes = tile_scratch_bytes * (Config::cooperative ? 1 : 2);
  static constexpr int barrier_bytes = 256;
  static constexpr int sum_bytes = tile_rows * tile_cols * 4;  // of one block
  static constexpr int most_stages = 12;
  // Sums that change their threads on the way to a turned tile's epilogue have a buffer of their
  // own beside the store buffers, or go through these.
  static constexpr bool turns_sums = turned && !only_stores<Epilogue>;
  static constexpr int bytes_beside(int buffers, bool turn_buffer) {
    return scratch_bytes + barrier_bytes + (cluster_k - 1) * sum_bytes +
           2 * buffers * store_buffer_bytes + (turn_buffer ? 2 * turn_buffer_bytes : 0);
  }
  static constexpr int stages_beside(int buffers, bool turn_buffer) {
    return min_of((most_bytes - bytes_beside(buffers, turn_buffer)) / stage_bytes, most_stages);
  }
  // Turned tiles would rather have a fourth stage than a turn buffer, and than a second store
  // buffer for each consumer.
  static constexpr bool turns_apart =
      turns_sums && (stages_beside(1, true) >= 4 || stages_beside(1, false) < 4);
  static constexpr int store_buffers =
      turned && stages_beside(2, turns_apart) < 4 && stages_beside(1, turns_apart) >= 4 ? 1 : 2;
  static constexpr int queue_bytes = 2 * store_buffers * store_buffer_bytes;
  static constexpr int fixed_bytes = bytes_beside(store_buffers, turns_apart);
  static constexpr int fitting_stages = stages_beside(store_buffers, turns_apart);
  // Ping-pong: an even number, so that the entry before a slab in its stage is never the other
  // consumer's step (see multiply). With cluster_k there is only one.
  static constexpr int stages =
      Config::cooperative || cluster_k > 1 ? fitting_stages : fitting_stages / 2 * 2;
  static_assert(Config::cooperative || ring_slabs < stages, "the slabs of a tile fill the ring");
  static constexpr int shared_bytes = stages * stage_bytes + fixed_bytes;
  using Place = RingPlace<stages>;
  // A producer that fetches many operands or finds them needs more registers. 128 p + 256 c ≤
  // 65,536.
  static constexpr bool busy_producer = batched || ragged ||
                                        Epilogue::tile_loads + Epilogue::col_loads > 2 ||
                                        Epilogue::col_loads > 1;
  static constexpr int producer_registers = busy_producer ? 40 : 24;
  static constexpr int consumer_registers = busy_producer ? 232 : 240;
  using Accumulators = float[Config::subtiles][Config::tile_n / 2];
  using States = typename Epilogue::State[strips];

  const Args& args;
  u32 base;   // of shared memory
  u32 rank;   // in the cluster
  int group;  // warpgroup
  int first_step, k_steps, tiles_m, tiles_n, first_tile, tile_step;

  FUSELINE_DEVICE explicit Sm90Gemm(const Args& a, u32 shared)
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
  FUSELINE_DEVICE u32 turn_at(int consumer) const { return sums() + consumer * turn_buffer_bytes; }
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

  FUSELINE_DEVICE void run() {
    if (ragged && first_tile >= tiles()) return;  // launched for the most that there can be
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
    if constexpr (blocks_of_cluster > 1)
      cluster_sync_relaxed();
    else
      __syncthreads();

    if (group == 0) {
      keep_registers<producer_registers>();
      if (threadIdx.x == 0) produce();
    } else {
      take_registers<consumer_registers>();
      consume(group - 1);
    }
    // The first consumer, who has the block's tile, comes to this barrier in add_up().
    if constexpr (cluster_k > 1)
      if (group != 1) cluster_arrive();
  }

  // ---- producer ----

  FUSELINE_DEVICE void produce() const {
    Place place;
    RaggedTiles walk = ragged_tiles();
    TilePlace before{-1, 0};  // ping-pong: the tile whose slabs are due
    TileWalk<shares_tail> parts = walk_from(first_tile, tile_step);
    for (TilePart part = parts.next(); part.tile >= 0; part = parts.next()) {
      const TilePlace tile = corner(part.tile, walk);
      const int steps = shares_tail ? part.steps : steps_of(tile);
      for (int k = 0; k < steps; ++k) {
        send_operands(place, tile, part.first + k);
        if (!Config::cooperative && k < ring_slabs && before.m >= 0) send_slab(place, before, k);
      }
      if (!Config::cooperative && before.m >= 0)
        for (int s = k_steps; s < ring_slabs; ++s) send_slab(place, before, s);
      if (Config::cooperative && (!shares_tail || is_last(part)))
        for (int s = 0; s < ring_slabs; ++s) send_slab(place, tile, s);
      before = tile;
    }
    if (!Config::cooperative && before.m >= 0 && finishes())
      for (int s = 0; s < ring_slabs; ++s) send_slab(place, before, s);
    // No block may leave while another can still say here that it has read a stage. A barrier of
    // the cluster would not do: it does not wait for the arrivals that are on their way.
    if constexpr (cluster > 1) {
      for (int s = 0; s < stages; ++s) {
        mbarrier_wait(empty(place.stage), place.parity ^ 1);
        place.next();
      }
    }
  }

  FUSELINE_DEVICE void send_operands(Place& place, TilePlace tile, int step) const {
    int k = (first_step + step) * Config::tile_k;
    int product = tile.result;
    if constexpr (ragged_k) {
      k += args.groups.begin(tile.result);
    } else if constexpr (batched) {
      const int each = ceil_div(args.K, Config::tile_k);
      product = tile.result * args.batch.summed + step / each;
      k = step % each * Config::tile_k;
    }
    const u32 bar = full(place.stage);
    mbarrier_wait(empty(place.stage), place.parity ^ 1);
    mbarrier_arrive_expect(bar, stage_bytes);
    const u32 a = stage_at(place.stage);
    const u32 b = a + a_bytes;
    const auto load_a = [&](u32 to, int x, int y) {
      if constexpr (batched && !ragged_k)
        tma_load(to, args.a, x, y, args.batch.a.head(product), args.batch.a.stack(product), bar);
      else if constexpr (Config::a_apart)
        tma_load(to, args.a, x, y % args.a_run, 0, y / args.a_run, bar);
      else
        tma_load(to, args.a, x, y, bar);
    };
    if constexpr (Config::a_is_km) {
#pragma unroll
      for (int m = 0; m < Config::tile_m; m += 64) load_a(a + m * box_row_bytes, tile.m + m, k);
    } else {
      load_a(a, k, tile.m);
    }
    constexpr u16 everyone = (1 << cluster) - 1;
    const int share = cluster > 1 ? static_cast<int>(rank) * Config::b_box_rows : 0;
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
    if constexpr (Config::b_is_kn) {
#pragma unroll
      for (int n = 0; n < Config::tile_n; n += 64)
        load_b(b + (n + share) * box_row_bytes, tile.n + n, k + share);
    } else {
      const int matrix = ragged ? tile.result * args.N : 0;
      load_b(b + share * box_row_bytes, k, matrix + tile.n + share);
    }
    place.next();
  }

  FUSELINE_DEVICE void send_slab(Place& place, TilePlace tile, int slab) const {
    const u32 bar = full(place.stage);
    mbarrier_wait(empty(place.stage), place.parity ^ 1);
    FetchBytes<Sm90Gemm> count;
    Epilogue::fetch(args.epilogue, count);
    mbarrier_arrive_expect(bar, count.bytes);
    Fetch<Sm90Gemm> fetch{stage_at(place.stage), bar, tile.m, tile.n + slab * slab_cols};
    if constexpr (turned) {
      fetch.row = tile.n;
      fetch.col = tile.m + TurnedTile<Sm90Gemm>::column_of_slab(slab);
    }
    Epilogue::fetch(args.epilogue, fetch);
    place.next();
  }

  // ---- consumers ----

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

  FUSELINE_DEVICE void consume(int consumer) const {
    Place place;
    StoreQueue queue{queue_at(consumer), 1 + consumer};
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
    RaggedTiles walk = ragged_tiles();
    TileWalk<shares_tail> parts = walk_from(t, step);
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
      const int steps = shares_tail ? part.steps : steps_of(tile);
      const u32 last =
          multiply(acc, place, Config::cooperative ? consumer : 0, !Config::cooperative && !first,
                   steps, ragged_k ? args.groups.rows(tile.result) : 0);
      first = false;
      if (!Config::cooperative && more) named_barrier_arrive(turn_of(1 - consumer), 256);
      wgmma_wait<0>();
#pragma unroll
      for (int s = 0; s < Config::subtiles; ++s) wgmma_pin(acc[s]);
      if (!ragged_k || steps > 0) release(last);

      if constexpr (cluster_k > 1)
        add_up<cluster_k>(acc[0], sums(), sum_bytes, rank, tile.m + row_in_tile < args.M);
      if constexpr (shares_tail) {
        if (part.steps < k_steps) share_sums(acc, parts.all, part, consumer);
        if (!is_last(part)) continue;
      }
      if (finishes()) {
        if constexpr (gathers_groups<Epilogue>) {
#pragma unroll
          for (int s = 0; s < Config::subtiles; ++s)
            gather<0>(acc[s], state[s], tile, row_in_tile + 64 * s, s, queue);
        }
        if constexpr (turned)
          TurnedTile<Sm90Gemm>{*this, consumer, tile, row_in_tile}.finish(acc, state, place, queue);
        else
          finish<0>(acc, state, place, tile, row_in_tile, queue, more);
      }
      if constexpr (!Config::cooperative) {
        place = place.after((more ? k_steps : 0) + ring_slabs);
      }
    }
    if (threadIdx.x % 128 == 0) tma_wait<0>();  // the buffers must outlive the copies
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
  FUSELINE_DEVICE bool is_last(const TilePart& part) const {
    return part.first + part.steps == k_steps;
  }
  static constexpr int tail_barrier = 7;  // and 8

  static FUSELINE_DEVICE int turn_of(int consumer) { return 4 + consumer; }

  // Rows of K from `first` on become zeros in a stage, for both consumers. Both read all of B.
  FUSELINE_DEVICE void clear_rows(u32 stage, int first) const {
    static_assert(!ragged_k || Config::a_rows == Config::tile_m, "boxes of 64 rows of K");
    constexpr int boxes = (Config::tile_m + Config::tile_n) / 64;
    const int chunks = (Config::tile_k - first) * (box_row_bytes / 16);  // of 16 bytes in a box
    for (int i = static_cast<int>(threadIdx.x) - 128; i < boxes * chunks; i += tile_threads)
      store_shared_16(stage_at(stage) + i / chunks * (Config::tile_k * box_row_bytes) +
                          first * box_row_bytes + i % chunks * 16,
                      make_uint4(0, 0, 0, 0));
    fence_to_async_proxy();
    named_barrier(clear_barrier, tile_threads);
  }
  static constexpr int clear_barrier = 6;

  // All `steps` of K of one tile, `rows_of_k` rows of which are its own if ragged_k. Returns the
  // stage of the last step, which is still being read.
  //
  // `foreign`: slabs of the other consumer lie between the first steps (ping-pong). A wait by
  // parity tells an entry of the ring from the one before it in the same stage, not from older
  // ones, and a slab may come later than younger steps. So we wait for the other's slabs too, each
  // before we release the step before it: until then its stage cannot be filled again.
  FUSELINE_DEVICE u32 multiply(Accumulators& acc, Place& place, int rows, bool foreign, int steps,
                               int rows_of_k) const {
    const u32 first_a =
        wgmma_tile(base + rows * Config::rows_per_group * box_row_bytes, 64 * box_row_bytes);
    const u32 first_b = wgmma_tile(base + a_bytes, 64 * box_row_bytes);
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
      wait_full(place);
      if constexpr (ragged_k) {
        const int left = rows_of_k - k * Config::tile_k;
        if (left < Config::tile_k) clear_rows(stage, left);
      }
      const u32 a = first_a + stage * (stage_bytes >> 4);
      const u32 b = first_b + stage * (stage_bytes >> 4);
      wgmma_fence();
#pragma unroll
      for (int i = 0; i < Config::tile_k / 16; ++i) {
        // 16 elements of K: 32 bytes within the rows, or 16 rows.
        constexpr u32 a_step = Config::a_is_km ? 16 * box_row_bytes : 32;
        constexpr u32 b_step = Config::b_is_kn ? 16 * box_row_bytes : 32;
#pragma unroll
        for (int s = 0; s < Config::subtiles; ++s)
#pragma unroll
          for (int p = 0; p < Config::products; ++p)
            Wgmma<Element, Config::product_n, Config::a_is_km, Config::b_is_kn>::run(
                part_of<Config::product_n / 2>(acc[s], p),
                a + ((s * 64 * box_row_bytes + i * a_step) >> 4),
                b + ((p * Config::product_n * box_row_bytes + i * b_step) >> 4), k > 0 || i > 0);
      }
      wgmma_commit();
      wgmma_wait<1>();  // this step stays under way; the step before it has been read
      if (foreign && 0 < k && k <= ring_slabs) wait_full(slab);
      if (k > 0) release(last);
      last = stage;
      place.next();
      if (foreign && k < ring_slabs) {
        slab = place;
        place.next();
      }
    }
    if (foreign && steps <= ring_slabs) {
      wait_full(slab);
      for (int s = steps; s < ring_slabs; ++s) {
        wait_full(place);
        place.next();
      }
    }
    return last;
  }

  // The epilogue, slab after slab: registers cannot be indexed at run time.
  template <int slab>
  FUSELINE_DEVICE void finish(const Accumulators& acc, States& state, Place& place, Tile tile,
                              int row_in_tile, StoreQueue& queue, bool more) const {
    if constexpr (slab < slabs) {
      const Place entry =
          Config::cooperative ? place : place.after(pingpong_slab_entry(slab, more ? k_steps : 0));
      if constexpr (has_loads) wait_full(entry);
      constexpr int passes = 8 / slab_groups;
#pragma unroll
      for (int s = 0; s < Config::subtiles; ++s)
        finish_row<slab * passes, passes>(acc[s], state[s], entry.stage, tile, row_in_tile + 64 * s,
                                          s, queue);
      if constexpr (has_loads) {
        __syncwarp();
        release(entry.stage);
        if (Config::cooperative) place.next();
      }
      finish<slab + 1>(acc, state, place, tile, row_in_tile, queue, more);
    }
  }

  // The pass ahead of the epilogue (epilogue/gather.cuh). It loads nothing by slabs.
  template <int index>
  FUSELINE_DEVICE void gather(const float (&acc)[Config::tile_n / 2],
                              typename Epilogue::State& state, Tile tile, int row, int strip,
                              StoreQueue& queue) const {
    if constexpr (index * 8 * slab_groups < tile_cols) {
      Epilogue::gather(args.epilogue, state, slab_at<index>(0, tile, row, strip, queue),
                       accumulated<index>(acc));
      gather<index + 1>(acc, state, tile, row, strip, queue);
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
  FUSELINE_DEVICE Slab90<Sm90Gemm, index> slab_at(u32 stage, Tile tile, int row, int strip,
                                                  StoreQueue& queue) const {
    constexpr int cols = 8 * slab_groups;
    const int thread = static_cast<int>(threadIdx.x) - 128;
    return {{tile.m + row, tile.n + index * cols, tile.end, args.N, cols, tile.result},
            stage_at(stage),
            row,
            strip,
            thread % tile_threads,
            scratch() + (Config::cooperative ? 0 : thread / 128 * tile_scratch_bytes),
            &queue};
  }

  // `passes` runs of the epilogue over the 64 columns of a stage.
  template <int index, int passes>
  FUSELINE_DEVICE void finish_row(const float (&acc)[Config::tile_n / 2],
                                  typename Epilogue::State& state, u32 stage, Tile tile, int row,
                                  int strip, StoreQueue& queue) const {
    if constexpr (passes > 0) {
      Epilogue::run(args.epilogue, state, slab_at<index>(stage, tile, row, strip, queue),
                    accumulated<index>(acc));
      finish_row<index + 1, passes - 1>(acc, state, stage, tile, row, strip, queue);
    }
  }
};

// The body of a kernel with __launch_bounds__(384, 1),
// __cluster_dims__(Sm90Gemm::blocks_of_cluster) and Sm90Gemm::shared_bytes of dynamic shared
// memory. With cluster_k: a cluster for every tile.
template <class Config, class Epilogue>
FUSELINE_DEVICE void gemm_sm90(const Sm90Args<Epilogue>& args) {
  extern __shared__ __align__(1024) unsigned char shared[];
  Sm90Gemm<Config, Epilogue>(args, shared_address(shared)).run();
}

}  // namespace fuseline::gpu
