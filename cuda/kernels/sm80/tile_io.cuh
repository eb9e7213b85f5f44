// How an epilogue reads and writes tiles on sm_80: every warp has 4 KiB of shared memory in which a
// slab of 16 rows changes from the fragment's order (a thread has pairs of columns of two rows) to
// memory's (a thread has 16 bytes of a row), and back. So global memory sees whole 128-byte rows.
#pragma once

#include "../epilogue/box.cuh"
#include "../epilogue/copy_box.cuh"
#include "../epilogue/operands.cuh"
#include "../epilogue/place.cuh"
#include "../epilogue/store.cuh"
#include "../ptx/sync.cuh"

namespace fuseline::gpu {

constexpr int warp_stage_bytes = 4096;
constexpr u32 warp_box_bytes = 16 * box_row_bytes;

// What an epilogue sees of slab `index_` of its warp's 128 columns.
template <class Shape, int index_>
struct Slab80 : SlabPlace {
  static constexpr int index = index_;
  static constexpr int tile_rows = Shape::tile_rows;
  static constexpr int tile_cols = 128;
  static constexpr int tile_threads = Shape::tile_threads;  // the warps with the same columns
  static constexpr int strips_per_warp = Shape::strips_per_warp;
  static constexpr int groups = Shape::slab_groups;
  static constexpr int scratch_step = Shape::scratch_step;
  u32 stage;           // the warp's shared memory
  int row_in_tile;     // of the warp's 16 rows
  int strip;           // of the warp
  int thread_in_tile;  // among these warps
  u32 scratch;         // for column reductions
  int barrier;

  static FUSELINE_DEVICE int number() { return index; }  // among the tile's slabs

  static constexpr bool adds_strips = false;  // sums down columns (epilogue/reduce.cuh)
  FUSELINE_DEVICE u32 column_scratch(int slot) const {
    return scratch + static_cast<u32>(slot * scratch_step);
  }
  FUSELINE_DEVICE int column_thread() const { return thread_in_tile; }
  FUSELINE_DEVICE void column_barrier() const { named_barrier(barrier, tile_threads); }
};

template <class T, int slot, int each, class Shape, int index>
FUSELINE_DEVICE auto load_tile(const TileIn<T, slot, each>& in, const Slab80<Shape, index>& slab) {
  constexpr int groups = Slab80<Shape, index>::groups;
  constexpr int cols = 4 * each * groups;
  constexpr int row_bytes = cols < 64 ? cols * 2 : box_row_bytes;
  constexpr int boxes = cols * 2 / row_bytes;
  // Addresses of other operands have columns in common with these. Kept for all of them, they took
  // registers that kernels of codes for few rows do not have, and 8 to 12 bytes were spilled.
  int first = slab.template first_col<each>();
  asm("" : "+r"(first));
  __syncwarp();  // what was here before has been read
#pragma unroll
  for (int box = 0; box < boxes; ++box) {
    for_each_chunk<row_bytes>([&](int row, int chunk) {
      const int col = first + box * row_bytes / 2 + chunk * 8;
      uint4 v{0, 0, 0, 0};
      if (slab.row + row < slab.rows && col >= 0 && col < slab.template width<each>())
        v = *reinterpret_cast<const uint4*>(in.data +
                                            static_cast<long long>(slab.row + row) * in.ld + col);
      store_shared_16(slab.stage + box * warp_box_bytes + swizzle<box_row_bytes>(row, chunk), v);
    });
  }
  __syncwarp();
  return read_box<T, each, groups>(slab.stage, warp_box_bytes, 0, 0);
}

template <class T, int slot, class Shape, int index>
FUSELINE_DEVICE auto load_cols(const ColsIn<T, slot>& in, const Slab80<Shape, index>& slab) {
  const int lane = threadIdx.x % 32;
  ColVector<2, Slab80<Shape, index>::groups> out;
  for_each_element<decltype(out)>([&](int, int g, int e) {
    const int col = slab.col + fragment_col(2, lane, g, e);
    out.at(0, g, e) = col >= 0 && col < in.count ? to_float(in.data[col]) : 0.0F;
  });
  return out;
}

template <bool add, class T, class Rows, int each, int groups, class Shape, int index>
FUSELINE_DEVICE void put_boxes(T* data, const Rows& rows, int cols,
                               const Slab80<Shape, index>& slab, const Fragment<each, groups>& x) {
  using Value = Fragment<each, groups>;
  constexpr int row_bytes = store_row_bytes<T, Value>;
  constexpr int size = sizeof(T);
  constexpr int boxes = Value::cols * size / row_bytes;
#pragma unroll
  for (int part = 0; part < boxes; ++part) {
    __syncwarp();
    write_box<T>(slab.stage, 0, x, part);
    __syncwarp();
    const int first = slab.template first_col<each>() + part * row_bytes / size;
    copy_box<add, row_bytes>(slab.stage, 0, data, rows, {slab.row, first, slab.rows, cols});
  }
}

template <bool add, bool across, class T, int each, int groups, class Shape, int index>
FUSELINE_DEVICE void put_tile(StoreMode<add, across>, const TileOut<T>& to,
                              const Slab80<Shape, index>& slab, const Fragment<each, groups>& x) {
  T* data = to.data;
  if constexpr (Shape::batched) data += to.place.offset(slab.result);
  put_boxes<add>(data, MatrixRows{to.ld}, to.cols, slab, x);
}

template <bool across, class T, bool whole, int each, int groups, class Shape, int index>
FUSELINE_DEVICE void put_tile(StoreMode<false, across>, const TileOutRuns<T, whole>& to,
                              const Slab80<Shape, index>& slab, const Fragment<each, groups>& x) {
  put_boxes<false>(to.tile.data, RunRows{to.tile.ld, to.run, to.step}, to.tile.cols, slab, x);
}

}  // namespace fuseline::gpu
