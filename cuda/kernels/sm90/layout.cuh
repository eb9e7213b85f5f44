// What a Hopper GEMM knows before it runs: the tile's parts, shared memory, registers.
#pragma once

#include "../epilogue/run.cuh"
#include "config.cuh"
#include "ring_order.cuh"
#include "tile_io.cuh"

namespace fuseline::gpu {

// Whether an epilogue does nothing but store what was multiplied (epilogue/plain.cuh).
template <class Epilogue, class = void>
constexpr bool only_stores = false;
template <class Epilogue>
constexpr bool only_stores<Epilogue, decltype(void(Epilogue::only_stores))> = Epilogue::only_stores;

// Whether the slabs of a tile share one copy of the epilogue's code, in a loop. Unrolled, a
// function of forty instructions makes 100 KB of code of a tile, and a multiprocessor that runs
// each of them once fetches for longer than it computes (cuda/emit/epilogue_source.cpp says which
// do).
template <class Epilogue, class = void>
constexpr bool rolls = false;
template <class Epilogue>
constexpr bool rolls<Epilogue, decltype(void(Epilogue::rolls))> = Epilogue::rolls;
// Whether its state goes from slab to slab: sums along rows.
template <class Epilogue, class = void>
constexpr bool carries = false;
template <class Epilogue>
constexpr bool carries<Epilogue, decltype(void(Epilogue::carries))> = Epilogue::carries;

// Sums down columns that an epilogue makes.
template <class Epilogue, class = void>
constexpr int column_sums = 0;
template <class Epilogue>
constexpr int column_sums<Epilogue, decltype(void(Epilogue::column_sums))> = Epilogue::column_sums;

template <class Config_, class Epilogue_>
struct Sm90Layout {
  using Config = Config_;
  using Epilogue = Epilogue_;
  using Args = typename Config::template Args<Epilogue>;
  using Operand = typename Config::Operand;
  static constexpr int threads = 384;
  static constexpr int cluster = Config::cluster;      // along M
  static constexpr int cluster_k = Config::cluster_k;  // along K
  static constexpr int blocks_of_cluster = cluster * cluster_k;
  static constexpr bool batched = Config::batched;
  static constexpr bool ragged = Config::ragged;
  static constexpr bool ragged_k = Config::ragged_k;
  static constexpr bool shares_tail = Config::shares_tail;
  // Whether all blocks that have a part of a shared tile add it up together (parted_tile.cuh).
  static constexpr bool adds_together = shares_tail && only_stores<Epilogue> && !Config::scaled;
  static constexpr bool turned = Config::turned;
  static constexpr bool store_by_threads = Config::store_by_threads;
  static_assert(Config::cooperative || Epilogue::scratch_bytes == 0,
                "sums down columns: a pass's scratch would be written before its sum is complete");
  static_assert(!Config::half_boxes || !(Config::a_is_km || Config::b_is_kn || Config::a_apart ||
                                         batched || ragged),
                "halves of boxes: of plain operands along K");
  // Of a step of K in shared memory, in each of its boxes.
  static constexpr int operand_row_bytes = Config::half_boxes ? 64 : box_row_bytes;
  // The tile as the epilogue sees it.
  static constexpr int tile_rows = turned ? Config::tile_n : Config::tile_m;
  static constexpr int tile_cols = turned ? Config::rows_per_group : Config::tile_n;
  static constexpr int tile_threads = Config::cooperative ? 256 : 128;
  static constexpr int strips = turned ? ceil_div(tile_rows, 64) : Config::subtiles;
  static constexpr int strips_per_warp = strips;
  static constexpr int column_sums_of_tile = column_sums<Epilogue>;
  // A warp's rows may no longer be the tile's.
  static constexpr bool clips_rows = ragged || (turned && tile_rows % 64 != 0);
  static constexpr int slabs = (turned ? Config::tile_m : tile_cols) / slab_cols;
  static constexpr int slab_groups = Epilogue::slab_groups;
  static constexpr bool has_loads = Epilogue::tile_loads + Epilogue::col_loads > 0;
  static constexpr int ring_slabs = has_loads ? slabs : 0;
  static constexpr int box_bytes = tile_rows * box_row_bytes;  // of what a slab loads

  // Shared memory: stages | store buffers | scratch | barriers | partial sums of the other blocks.
  static constexpr int operand_bytes = static_cast<int>(sizeof(Operand));
  static constexpr int a_stage_rows = ragged ? Config::tile_m : Config::a_rows;
  static constexpr int a_bytes = a_stage_rows * Config::tile_k * operand_bytes;
  static constexpr int b_bytes = Config::tile_n * Config::tile_k * operand_bytes;
  static constexpr int stage_bytes = a_bytes + b_bytes;
  static constexpr int cols_offset = stage_bytes - Epilogue::col_loads * cols_in_bytes;
  // What a slab of an upright tile loads fits one stage. High turned tiles take the next one too.
  static constexpr int boxes_of_stage = cols_offset / box_bytes;
  static constexpr int slab_stages =
      has_loads ? max_of(1, ceil_div(Epilogue::tile_loads, max_of(1, boxes_of_stage))) : 0;
  static_assert(Epilogue::tile_loads == 0 || boxes_of_stage > 0, "a box exceeds a stage");
  static_assert(slab_stages <= (turned ? 2 : 1), "a slab's loads exceed its stages");
  static constexpr int most_bytes = 227 * 1024;
  // One strip of rows after the other: column reductions need not wait with their scratch. Each
  // consumer of a turned tile has columns of its own, and four warps below each other.
  static constexpr int scratch_step = turned ? Epilogue::scratch_bytes / 2
                                      : strips_per_warp > 1 ? Epilogue::scratch_bytes
                                                            : 0;
  static constexpr int tile_scratch_bytes =
      turned                ? 2 * column_sums_of_tile * scratch_step
      : strips_per_warp > 1 ? most_column_reductions* scratch_step
                            : Epilogue::scratch_bytes;
  // Numbers of 64 rows that go from one consumer to the other (tile_io.cuh).
  static constexpr int half_sums_bytes = turned && tile_cols == slab_cols ? 64 * 4 : 0;
  static constexpr int scratch_bytes =
      tile_scratch_bytes * (Config::cooperative ? 1 : 2) + half_sums_bytes;
  static constexpr int barrier_bytes = 256;
  static constexpr int sum_bytes = tile_rows * tile_cols * 4;  // of one block
  static constexpr int most_stages = 12;
  static constexpr int bytes_beside(int buffers) {
    return scratch_bytes + barrier_bytes + (cluster_k - 1) * sum_bytes +
           2 * buffers * store_buffer_bytes;
  }
  static constexpr int stages_beside(int buffers) {
    return min_of((most_bytes - bytes_beside(buffers)) / stage_bytes, most_stages);
  }
  // Of each consumer. Some turned tiles have a fourth stage in the second's place.
  static constexpr int store_buffers =
      turned && stages_beside(2) < 4 && stages_beside(1) >= 4 ? 1 : 2;
  static constexpr int queue_bytes = 2 * store_buffers * store_buffer_bytes;
  static constexpr int fixed_bytes = bytes_beside(store_buffers);
  static constexpr int fitting_stages = stages_beside(store_buffers);
  // Ping-pong: an even number, so that the entry before a slab in its stage is never the other
  // consumer's step (mainloop.cuh). With cluster_k there is only one.
  static constexpr int stages =
      Config::cooperative || cluster_k > 1 ? fitting_stages : fitting_stages / 2 * 2;
  static_assert(Config::cooperative || ring_slabs < stages, "the slabs of a tile fill the ring");
  static constexpr int shared_bytes = stages * stage_bytes + fixed_bytes;
  using Place = RingPlace<stages>;
  // A producer that fetches many operands or finds them needs more registers.
  static constexpr bool busy_producer = batched || ragged ||
                                        Epilogue::tile_loads + Epilogue::col_loads > 2 ||
                                        Epilogue::col_loads > 1;
  static constexpr bool loops = rolls<Epilogue>;
  // A state that a loop carries needs the eight registers itself; a producer of groups of rows or
  // of batches cannot spare them.
  static constexpr bool needs_registers = loops && carries<Epilogue> && !batched && !ragged;
  static constexpr bool more_for_producer = busy_producer && !needs_registers;
  static constexpr int producer_registers = more_for_producer ? 40 : 24;
  static constexpr int consumer_registers = more_for_producer ? 232 : 240;
  // A thread starts with 65,536 / 384 registers, rounded down to eights, and warpgroups give each
  // other of these alone: who asks for more than is left waits for ever.
  static_assert(producer_registers + 2 * consumer_registers <= 3 * (65536 / threads / 8 * 8),
                "warpgroups ask for more registers than the thread block has");
  using Accumulators = float[Config::subtiles][Config::tile_n / 2];
  using States = typename Epilogue::State[strips];
};

}  // namespace fuseline::gpu
