// How an epilogue reads and writes tiles on sm_90.
//
// Loads: the producer has asked the copy engine for the slab's boxes (`Fetch`); here they are read
// from the ring's stage. Stores: a warp writes its 16 rows to one of its warpgroup's buffers
// in shared memory (stmatrix), and one lane gives them to the copy engine, which clips at the edges.
#pragma once

#include "../epilogue/box.cuh"
#include "../epilogue/copy_box.cuh"
#include "../epilogue/operands.cuh"
#include "../epilogue/place.cuh"
#include "../epilogue/store.cuh"
#include "../ptx/matrix.cuh"
#include "../ptx/sync.cuh"
#include "../swizzle.cuh"
#include "store_buffer.cuh"

namespace fuseline::gpu {

static_assert(longest_stored_row == box_row_bytes);
constexpr int cols_in_bytes = 256;  // room for one vector's 64 columns in a stage

// In which of a slab's stages box `slot` is. Vectors along columns are in the first.
template <class Shape>
FUSELINE_HD constexpr int stage_of_box(int slot) {
  return slot / Shape::boxes_of_stage;
}
template <class Shape>
FUSELINE_HD constexpr int place_of_box(int slot) {
  return slot % Shape::boxes_of_stage * Shape::box_bytes;
}

// Calls for each operand of Epilogue::fetch: starts the copies into one stage of a slab...
template <class Shape, int of_slab>
struct Fetch {
  u32 stage, barrier;
  int row, col;  // first row of the tile, first column of the slab
  template <class T, int slot, int each>
  FUSELINE_DEVICE void operator()(const TileIn<T, slot, each>& in) const {
#pragma unroll
    for (int box = 0; box < each / 2; ++box)
      if (stage_of_box<Shape>(slot + box) == of_slab)
        tma_load(stage + place_of_box<Shape>(slot + box), in.map,
                 (col - in.begin) * each / 2 + 64 * box, row, barrier);
  }
  template <class T, int slot>
  FUSELINE_DEVICE void operator()(const ColsIn<T, slot>& in) const {
    if constexpr (of_slab == 0)
      tma_load_vector(stage + Shape::cols_offset + slot * cols_in_bytes, in.map, col - in.begin,
                      barrier);
  }
};
// ... and counts their bytes.
template <class Shape, int of_slab>
struct FetchBytes {
  u32 bytes = 0;
  template <class T, int slot, int each>
  FUSELINE_DEVICE void operator()(const TileIn<T, slot, each>&) {
#pragma unroll
    for (int box = 0; box < each / 2; ++box)
      if (stage_of_box<Shape>(slot + box) == of_slab) bytes += Shape::box_bytes;
  }
  template <class T, int slot>
  FUSELINE_DEVICE void operator()(const ColsIn<T, slot>&) {
    if constexpr (of_slab == 0) bytes += slab_cols * sizeof(T);
  }
};

// The ring's stages with what a slab loads; most slabs have one.
struct SlabStages {
  u32 first, second;
};

// A warpgroup's store buffers, Shape::store_buffers of them.
struct StoreQueue {
  u32 buffers;
  int barrier;   // named barrier of the warpgroup
  u32 next = 0;  // the buffer to be written next
};

// What an epilogue sees of slab `index_` of its tile. Where slabs come in a loop, that is its place
// in its stage alone, and nothing may depend on it but what the stage holds.
template <class Shape, int index_>
struct Slab90 : SlabPlace {
  static constexpr int index = index_;
  static constexpr int tile_rows = Shape::tile_rows;
  static constexpr int tile_cols = Shape::tile_cols;
  static constexpr int tile_threads = Shape::tile_threads;  // that work on the tile
  static constexpr int strips_per_warp = Shape::strips_per_warp;
  static constexpr int groups = Shape::slab_groups;
  static constexpr int scratch_step = Shape::scratch_step;
  // Narrow slabs: groups before this one in the stage's 64 columns.
  static constexpr int first_group = index * groups % 8;
  SlabStages stages;   // the ring's, with this slab's loads
  int row_in_tile;     // of the warp's 16 rows
  int strip;           // 0, 1, ... where a warp has several times 16 rows
  int thread_in_tile;  // 0 to tile_threads - 1
  u32 scratch;         // for column reductions
  StoreQueue* queue;
  int at;        // among the tile's slabs
  int all_rows;  // of the result

  FUSELINE_DEVICE int number() const { return at; }
  FUSELINE_DEVICE u32 box(int slot) const {
    return (stage_of_box<Shape>(slot) == 0 ? stages.first : stages.second) +
           place_of_box<Shape>(slot);
  }

  // ---- sums down columns (epilogue/reduce.cuh) ----

  static constexpr bool adds_strips = Shape::turned;
  FUSELINE_DEVICE u32 column_scratch(int slot) const {
    if constexpr (!adds_strips) return scratch + static_cast<u32>(slot * scratch_step);
    constexpr int pass = first_group / groups, passes = 8 / groups;
    const int consumer = thread_in_tile / 128;
    return scratch + static_cast<u32>((consumer * Shape::column_sums_of_tile + slot) * scratch_step +
                                      pass * (scratch_step / passes));
  }
  FUSELINE_DEVICE int column_thread() const {
    return adds_strips ? thread_in_tile % 128 : thread_in_tile;
  }
  FUSELINE_DEVICE void column_barrier() const {
    if constexpr (adds_strips || tile_threads == 128)
      named_barrier(queue->barrier, 128);
    else
      named_barrier(3, tile_threads);
  }
  // Of a tile whose consumers have 64 columns each: a number of each of the warp's rows goes from
  // consumer 1 to consumer 0, who joins both. Says whether this one has. Both come here alike.
  template <class Op>
  FUSELINE_DEVICE bool join_halves(float (&v)[2], int /*number*/) const {
    static_assert(Shape::half_sums_bytes > 0, "both consumers have the same rows");
    constexpr int read = 9, written = 10;  // named barriers
    const int lane = static_cast<int>(threadIdx.x % 32);
    const u32 numbers =
        scratch + Shape::tile_scratch_bytes + 4 * static_cast<u32>(row_in_tile % 64);
    if (thread_in_tile >= 128) {
      named_barrier(read, 256);
#pragma unroll
      for (int half = 0; half < 2; ++half)
        if (lane % 4 == 0) store_shared(numbers + 4 * fragment_row(lane, half), v[half]);
      named_barrier_arrive(written, 256);
      return false;
    }
    named_barrier_arrive(read, 256);  // what was written before
    named_barrier(written, 256);
#pragma unroll
    for (int half = 0; half < 2; ++half)
      v[half] =
          Op::join(v[half], load_shared_float(numbers + 4 * fragment_row(lane, half)));
    return true;
  }
};

template <class T, int slot, int each, class Shape, int index>
FUSELINE_DEVICE auto load_tile(const TileIn<T, slot, each>&, const Slab90<Shape, index>& slab) {
  using Slab = Slab90<Shape, index>;
  // The second box of a wider tile may be in another stage.
  const u32 box = slab.box(slot);
  return read_box<T, each, Slab::groups>(box, each == 4 ? slab.box(slot + 1) - box : 0,
                                         static_cast<u32>(slab.row_in_tile), Slab::first_group);
}

template <class T, int slot, class Shape, int index>
FUSELINE_DEVICE auto load_cols(const ColsIn<T, slot>&, const Slab90<Shape, index>& slab) {
  using Slab = Slab90<Shape, index>;
  const u32 vector = slab.stages.first + Shape::cols_offset + slot * cols_in_bytes;
  const u32 first = 8 * Slab::first_group + threadIdx.x % 4 * 2;
  ColVector<2, Slab::groups> out;
#pragma unroll
  for (int g = 0; g < Slab::groups; ++g) {
    if constexpr (sizeof(T) == 2) {
      const FloatPair pair = unpack<T>(load_shared(vector + 2 * (8 * g + first)));
      out.at(0, g, 0) = pair.low;
      out.at(0, g, 1) = pair.high;
    } else {
      u32 low, high;
      load_shared(low, high, vector + 4 * (8 * g + first));
      out.at(0, g, 0) = __uint_as_float(low);
      out.at(0, g, 1) = __uint_as_float(high);
    }
  }
  return out;
}

// Of a warp's 16 rows: whether some lie behind the tile's last one and belong to another group, or
// another tile.
template <class Shape, int index>
FUSELINE_DEVICE bool meets_next_group(const Slab90<Shape, index>& slab) {
  return Shape::clips_rows && slab.row + 16 > slab.rows;
}

// The value box by box through the warpgroup's buffers, of which every warp has a part of its own
// (store_buffer.cuh): no warp waits for another. One lane gives the warp's rows to the copy engine
// (`send(from, col)`), or all lanes copy them (`copy(from, col)`), where `by_threads(col)`.
template <class T, class Value, class Shape, int index, class ByThreads, class Send, class Copy>
FUSELINE_DEVICE void put_boxes(const Slab90<Shape, index>& slab, const Value& x,
                               ByThreads&& by_threads, Send&& send, Copy&& copy) {
  constexpr int row_bytes = store_row_bytes<T, Value>;
  constexpr int boxes = Value::cols * sizeof(T) / row_bytes;
  StoreQueue& queue = *slab.queue;
  const u32 row = static_cast<u32>(slab.row_in_tile) % 64;
  const bool issuer = threadIdx.x % 32 == 0;
  // A warp may have columns of all rows, and then writes into every warp's part.
  static_assert(!has_columns<Value> || row_bytes == box_row_bytes, "rows that fill the parts");
  const auto meet = [&] {
    if constexpr (has_columns<Value>)
      named_barrier(queue.barrier, 128);
    else
      __syncwarp();
  };
#pragma unroll
  for (int part = 0; part < boxes; ++part) {
    const u32 buffer = queue.buffers + queue.next * store_buffer_bytes;
    // The copy engine has read this buffer's last box; another's may still be under way.
    if (issuer) tma_wait_read<Shape::store_buffers - 1>();
    meet();
    const u32 own = buffer + rows_in_buffer(row);
    if constexpr (has_columns<Value>)
      write_box<T>(buffer, row, x, part);
    else
      write_box<T>(own, 0, x, part);
    fence_to_async_proxy();
    meet();
    const int col = slab.template first_col<Value::each>() + part * (Value::cols / boxes);
    if (by_threads(col))
      copy(own, col);
    else if (issuer)
      send(own, col);
    if (issuer) tma_commit_group();  // also an empty one: groups count the buffers
    if constexpr (Shape::store_buffers == 2) queue.next ^= 1;
  }
}

template <bool add, bool across, class T, class Value, class Shape, int index>
FUSELINE_DEVICE void put_tile(StoreMode<add, across>, const TileOut<T>& to,
                              const Slab90<Shape, index>& slab, const Value& x) {
  static_assert(!(add && Shape::batched), "results of a batch are stored, not added");
  // The copy engine stores no box that begins at a negative column (an illegal instruction).
  const bool next_group = meets_next_group(slab);
  const auto by_threads = [&](int col) {
    return Shape::store_by_threads || next_group || (across && col < 0);
  };
  const auto send = [&](u32 from, int col) {
    if constexpr (add)
      tma_store_add(to.map, from, col, slab.row);
    else if constexpr (Shape::batched)
      tma_store(to.map, from, col, slab.row, to.place.head(slab.result),
                to.place.stack(slab.result));
    else
      tma_store(to.map, from, col, slab.row);
  };
  put_boxes<T>(slab, x, by_threads, send, [&](u32 own, int col) {
    copy_box<add, store_row_bytes<T, Value>>(own, 0, to.data, MatrixRows{to.ld},
                                             {slab.row, col, slab.rows, to.cols});
  });
}

// Rows that lie apart.
template <bool across, class T, bool whole, int each, int groups, class Shape, int index>
FUSELINE_DEVICE void put_tile(StoreMode<false, across>, const TileOutRuns<T, whole>& to,
                              const Slab90<Shape, index>& slab, const Fragment<each, groups>& x) {
  const TileOut<T>& tile = to.tile;
  const bool next_group = meets_next_group(slab);
  const auto by_threads = [&](int col) { return !whole || next_group || (across && col < 0); };
  const auto send = [&](u32 from, int col) {
    tma_store(tile.map, from, col, slab.row % to.run, 0, slab.row / to.run);
  };
  put_boxes<T>(slab, x, by_threads, send, [&](u32 own, int col) {
    copy_box<false, store_row_bytes<T, Fragment<each, groups>>>(
        own, 0, tile.data, RunRows{tile.ld, to.run, to.step},
        {slab.row, col, slab.rows, tile.cols});
  });
}

}  // namespace fuseline::gpu
