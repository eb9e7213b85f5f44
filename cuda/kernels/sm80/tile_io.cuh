// How an epilogue reads and writes tiles on sm_80: every warp has 4 KiB of shared memory in which a
// slab of 16 rows changes from the fragment's order (a thread has pairs of columns of two rows) to
// memory's (a thread has 16 bytes of a row), and back. So global memory sees whole 128-byte rows.
#pragma once

#include "../epilogue/box.cuh"
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
  static constexpr int tile_threads = 128;  // the four warps with the same columns
  static constexpr int strips_per_warp = 2;
  static constexpr int groups = Shape::slab_groups;
  u32 stage;           // the warp's shared memory
  int row_in_tile;     // of the warp's 16 rows
  int strip;           // 0 or 1
  int thread_in_tile;  // among the four warps
  u32 scratch;         // for column reductions
  int barrier;

  FUSELINE_DEVICE void tile_barrier() const { named_barrier(barrier, tile_threads); }
};

FUSELINE_DEVICE uint4 load_shared_16(u32 address) {
  uint4 v;
  asm volatile("ld.shared.v4.b32 {%0, %1, %2, %3}, [%4];"
               : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
               : "r"(address)
               : "memory");
  return v;
}
FUSELINE_DEVICE void store_shared_16(u32 address, uint4 v) {
  asm volatile("st.shared.v4.b32 [%0], {%1, %2, %3, %4};" ::"r"(address), "r"(v.x), "r"(v.y),
               "r"(v.z), "r"(v.w)
               : "memory");
}

// Calls f(row, chunk) for the 16-byte chunks of 16 rows of `row_bytes` that this lane moves.
template <int row_bytes, class F>
FUSELINE_DEVICE void for_each_chunk(F&& f) {
  constexpr int chunks = row_bytes / 16;
  const int lane = threadIdx.x % 32;
#pragma unroll
  for (int i = lane; i < 16 * chunks; i += 32) f(i / chunks, i % chunks);
}

template <class T, int slot, int each, class Shape, int index>
FUSELINE_DEVICE auto load_tile(const TileIn<T, slot, each>& in, const Slab80<Shape, index>& slab) {
  constexpr int groups = Slab80<Shape, index>::groups;
  constexpr int cols = 4 * each * groups;
  constexpr int row_bytes = cols < 64 ? cols * 2 : box_row_bytes;
  constexpr int boxes = cols * 2 / row_bytes;
  const int first = slab.template first_col<each>() - in.begin * each / 2;
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
    const int col = slab.col - in.begin + fragment_col(2, lane, g, e);
    out.at(0, g, e) = col >= 0 && col < in.count ? to_float(in.data[col]) : 0.0F;
  });
  return out;
}

// Adds the 16 bytes of `v` to those of `old`, element by element.
template <class T>
FUSELINE_DEVICE uint4 add_chunks(uint4 v, uint4 old) {
  u32* a = reinterpret_cast<u32*>(&v);
  const u32* b = reinterpret_cast<const u32*>(&old);
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    if constexpr (sizeof(T) == 2) {
      const FloatPair x = unpack<T>(a[i]);
      const FloatPair y = unpack<T>(b[i]);
      a[i] = pack<T>(x.low + y.low, x.high + y.high);
    } else {
      a[i] = __float_as_uint(__uint_as_float(a[i]) + __uint_as_float(b[i]));
    }
  }
  return v;
}

template <bool add, class T, int each, int groups, class Shape, int index>
FUSELINE_DEVICE void put_tile(StoreMode<add>, const TileOut<T>& to,
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
    for_each_chunk<row_bytes>([&](int row, int chunk) {
      const int col = first + chunk * (16 / size);
      if (slab.row + row >= slab.rows || col < 0 || col >= to.cols) return;
      auto* at =
          reinterpret_cast<uint4*>(to.data + static_cast<long long>(slab.row + row) * to.ld + col);
      const uint4 v = load_shared_16(slab.stage + swizzle<row_bytes>(row, chunk));
      *at = add ? add_chunks<T>(v, *at) : v;
    });
  }
}

}  // namespace fuseline::gpu
