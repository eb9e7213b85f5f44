// The product's Ampere mainloop (it also runs on Ada and Hopper): D[M, N] = A[M, K] B[N, K]^T, then
// the same epilogues as on sm_90.
//
// A thread block makes one tile of 128 × 128 (four warps) or 128 × 256 (eight). Its threads copy
// 32 columns of K at a time into a ring of four stages with cp.async, which needs no registers and
// runs ahead of the multiplication. Every warp makes 32 rows × 128 columns with ldmatrix and
// mma.sync: 128 columns, so that a row's partial sums lie in one warp.
//
// Operands as on sm_90: A is [M, K] or [K, M], B is [N, K] or [K, N], rows at multiples of 16
// bytes. With `batched` there are many such products (batch.cuh), tiles of all of them in one row.
// With `ragged` the rows of A and D lie in groups, and group g is multiplied with rows g · N onward
// of B, or g · K onward where B is [K, N] (ragged.cuh). With `ragged_k` the groups lie along K:
// product g of the batch sums their rows.
#pragma once

#include "launch_order.cuh"
#include "batch.cuh"
#include "epilogue/gather.cuh"
#include "epilogue/run.cuh"
#include "epilogue/store.cuh"
#include "ptx/cp_async.cuh"
#include "ragged.cuh"
#include "raster.cuh"
#include "sm80/tile_io.cuh"

namespace fuseline::gpu {

template <class Element_, int tile_n_ = 128, bool a_is_km_ = false, bool b_is_kn_ = false,
          bool batched_ = false, bool ragged_ = false, bool ragged_k_ = false, int stages_ = 4>
struct Sm80Config {
  using Element = Element_;
  static constexpr int tile_m = 128, tile_n = tile_n_, tile_k = 32, stages = stages_;
  static constexpr bool a_is_km = a_is_km_, b_is_kn = b_is_kn_, batched = batched_;
  static constexpr bool ragged = ragged_;
  static_assert(!ragged || (!batched && !a_is_km), "groups are rows of A");
  static constexpr bool ragged_k = ragged_k_;
  static_assert(!ragged_k || (batched && a_is_km && b_is_kn), "groups are rows of A and of B");
  static constexpr int threads = tile_n;  // a warp has 32 rows × 128 columns
  static_assert(tile_n == 128 || tile_n == 256, "one or two warps side by side");
};

template <class Config, class Epilogue>
struct Sm80Args {
  const typename Config::Element* a;
  const typename Config::Element* b;
  int M, N, K;
  int lda, ldb;  // elements from row to row as stored
  int raster_group;
  typename Epilogue::Params epilogue;
  Batch batch{};  // if Config::batched: M, N and K are of one product
  // If Config::ragged: N is one group's, M that of all groups. If Config::ragged_k: K is that of
  // all.
  RowGroups groups{};
};

template <class Config, class Epilogue>
struct Sm80Gemm {
  using Args = Sm80Args<Config, Epilogue>;
  static constexpr int threads = Config::threads;
  using Element = typename Config::Element;
  static constexpr int tile_rows = Config::tile_m;
  static constexpr bool batched = Config::batched;
  static constexpr bool ragged = Config::ragged;
  static constexpr bool ragged_k = Config::ragged_k;
  static constexpr int slab_groups = Epilogue::slab_groups;
  static constexpr int a_bytes = Config::tile_m * Config::tile_k * 2;
  static constexpr int stage_bytes = a_bytes + Config::tile_n * Config::tile_k * 2;
  static constexpr int warps = Config::threads / 32;
  static constexpr int column_warps = Config::tile_n / 128;
  static constexpr int tile_threads = 128, strips_per_warp = 2;
  // The epilogue uses the same memory: a stage per warp, then scratch per 128 columns. A warp has
  // two strips of rows: column reductions keep the first's while they wait for the second's.
  static constexpr int scratch_step = Epilogue::scratch_bytes;
  static constexpr int scratch_bytes = most_column_reductions * scratch_step;
  static constexpr int epilogue_bytes = warps * warp_stage_bytes + column_warps * scratch_bytes;
  static constexpr int shared_bytes = max_of(Config::stages * stage_bytes, epilogue_bytes);

  const Sm80Args<Config, Epilogue>& args;
  u32 base;
  int m0, n0;          // the tile's corner
  int result = 0;      // of a batch
  int group = 0;       // of rows; -1: the thread block has no tile
  int group_end = 0;   // the row behind the group's last one
  int warp_m, warp_n;  // the warp's corner in it

  FUSELINE_DEVICE Sm80Gemm(const Sm80Args<Config, Epilogue>& a, u32 shared)
      : args(a), base(shared) {
    const int tiles_m = ceil_div(a.M, Config::tile_m), tiles_n = ceil_div(a.N, Config::tile_n);
    int tile = static_cast<int>(blockIdx.x);
    if constexpr (ragged) {
      RaggedTiles tiles{a.groups, Config::tile_m, tiles_n, a.raster_group};
      const RaggedTile t = tiles.find(tile);
      group = t.group;
      m0 = t.row;
      n0 = t.column_tile * Config::tile_n;
      group_end = t.end;
    } else {
      if constexpr (batched) {
        result = tile / (tiles_m * tiles_n);
        tile -= result * tiles_m * tiles_n;
      }
      const TilePlace p = grouped_tile(tile, tiles_m, tiles_n, a.raster_group);
      m0 = p.m * Config::tile_m;
      n0 = p.n * Config::tile_n;
    }
    const int warp = static_cast<int>(threadIdx.x) / 32;
    warp_m = warp % 4 * 32;
    warp_n = warp / 4 * 128;
  }
  // The row behind the last one that the tile may have.
  FUSELINE_DEVICE int end() const { return ragged ? group_end : args.M; }

  // Copies one operand's tile of a stage: `rows` rows (of M or N) by 32 columns of K, 16 bytes a
  // thread at a time.
  //   contiguous along K:     rows of 64 bytes
  //   contiguous along rows:  boxes of 64 rows: 32 steps of K, 128 bytes each
  // What a thread copies lies at fixed distances from its first chunk, so the loop over K only
  // moves one pointer.
  template <int rows, bool transposed>
  struct Copier {
    static constexpr int chunks = (transposed ? rows : Config::tile_k) / 8;  // of a line
    static constexpr int lines = Config::threads / chunks;  // that the threads copy at once
    static constexpr int repeats = rows * Config::tile_k / 8 / Config::threads;
    const Element* from;  // this thread's first chunk, at K = 0
    long long line_step;  // elements from one of its chunks to the next
    u32 to;               // offset of its first chunk in the tile
    int line, chunk;
    int row0, all_rows, ld;

    FUSELINE_DEVICE Copier(const Element* data, int ld_, int row, int count)
        : row0(row), all_rows(count), ld(ld_) {
      line = static_cast<int>(threadIdx.x) / chunks;
      chunk = static_cast<int>(threadIdx.x) % chunks;
      line_step = static_cast<long long>(lines) * ld;
      if constexpr (transposed) {
        from = data + static_cast<long long>(line) * ld + row0 + chunk * 8;
        to = chunk / 8 * (Config::tile_k * 128) + swizzle<128>(line, chunk % 8);
      } else {
        from = data + static_cast<long long>(row0 + line) * ld + chunk * 8;
        to = swizzle<64>(line, chunk);
      }
    }
    // `shift`: elements from the first product's matrix to this one's.
    FUSELINE_DEVICE void copy(u32 tile, int k0, int K, long long shift) const {
      const Element* at = from + shift + (transposed ? static_cast<long long>(k0) * ld : k0);
      // A step of `lines` keeps the swizzle: it is a multiple of eight rows.
      static_assert(lines % 8 == 0, "the swizzle must repeat");
      constexpr int to_step = lines * (transposed ? 128 : 64);
#pragma unroll
      for (int i = 0; i < repeats; ++i) {
        const int l = line + i * lines;
        const int outer = transposed ? K - k0 - l : all_rows - row0 - l;
        const int inner = (transposed ? all_rows - row0 : K - k0) - chunk * 8;
        const int count = outer > 0 ? max_of(min_of(inner, 8), 0) : 0;
        cp_async_16(tile + to + i * to_step, count > 0 ? at : from, count * 2);
        at += line_step;
      }
    }
  };
  using CopyA = Copier<Config::tile_m, Config::a_is_km>;
  using CopyB = Copier<Config::tile_n, Config::b_is_kn>;

  // Rows of K of one product.
  FUSELINE_DEVICE int depth() const { return ragged_k ? args.groups.rows(result) : args.K; }
  FUSELINE_DEVICE int steps() const {
    return ceil_div(depth(), Config::tile_k) * (batched && !ragged_k ? args.batch.summed : 1);
  }

  FUSELINE_DEVICE void copy_stage(const CopyA& a, const CopyB& b, int step) const {
    if (step < steps()) {
      const u32 to = base + step % Config::stages * stage_bytes;
      int k = step * Config::tile_k;
      long long shift_a = 0, shift_b = 0;
      if constexpr (ragged_k) {
        const long long begin = args.groups.begin(result);
        shift_a = begin * args.lda;
        shift_b = begin * args.ldb;
      } else if constexpr (batched) {
        const int each = ceil_div(args.K, Config::tile_k);
        const int product = result * args.batch.summed + step / each;
        k = step % each * Config::tile_k;
        shift_a = args.batch.a.offset(product);
        shift_b = args.batch.b.offset(product);
      }
      a.copy(to, k, depth(), shift_a);
      b.copy(to + a_bytes, k, depth(), shift_b);
    }
    cp_async_commit();  // also when empty: so that groups can be counted
  }

  // Reads 16 rows by 16 columns of K of an operand as four 8 × 8 matrices: rows first for A (rows
  // 0-7 and 8-15 of k 0-7, then of k 8-15), K first for B. What depends on the lane is computed
  // once; strips of 16 rows and of K are constants that the swizzle takes by xor.
  template <bool transposed, bool rows_first>
  struct Reader {
    u32 lane_offset;
    FUSELINE_DEVICE explicit Reader(u32 warp_row) {
      const u32 lane = threadIdx.x % 32;
      const u32 row_half = rows_first ? lane / 8 % 2 : lane / 16;
      const u32 k_half = rows_first ? lane / 16 : lane / 8 % 2;
      if constexpr (transposed) {
        const u32 chunk = warp_row / 8 + row_half;
        lane_offset =
            chunk / 8 * (Config::tile_k * 128) + swizzle<128>(8 * k_half + lane % 8, chunk % 8);
      } else {
        lane_offset = warp_row * 64 + swizzle<64>(8 * row_half + lane % 8, k_half);
      }
    }
    FUSELINE_DEVICE void read(u32 (&words)[4], u32 tile, int strip, int kk) const {
      if constexpr (transposed) {
        const u32 at = (lane_offset ^ (strip % 4 * 32)) + strip / 4 * (Config::tile_k * 128);
        ldmatrix_x4_transposed(words, tile + at + kk * (16 * 128));
      } else {
        ldmatrix_x4(words, tile + (lane_offset ^ (kk * 32)) + strip * (16 * 64));
      }
    }
  };
  using ReadA = Reader<Config::a_is_km, true>;
  using ReadB = Reader<Config::b_is_kn, false>;

  FUSELINE_DEVICE void multiply_stage(float (&acc)[2][16][4], const ReadA& read_a,
                                      const ReadB& read_b, int step) const {
    const u32 a = base + step % Config::stages * stage_bytes;
    const u32 b = a + a_bytes;
#pragma unroll
    for (int kk = 0; kk < Config::tile_k / 16; ++kk) {
      u32 a_words[2][4];
      u32 b_words[2][4];
#pragma unroll
      for (int m = 0; m < 2; ++m) read_a.read(a_words[m], a, m, kk);
      read_b.read(b_words[0], b, 0, kk);
#pragma unroll
      for (int n = 0; n < 8; ++n) {
        if (n < 7) read_b.read(b_words[(n + 1) % 2], b, n + 1, kk);  // while this one multiplies
        const u32(&w)[4] = b_words[n % 2];
#pragma unroll
        for (int m = 0; m < 2; ++m) {
          mma_16x8x16<Element>(acc[m][2 * n], a_words[m], w[0], w[1]);
          mma_16x8x16<Element>(acc[m][2 * n + 1], a_words[m], w[2], w[3]);
        }
      }
    }
  }

  FUSELINE_DEVICE void run() const {
    if (ragged && group < 0) return;
    typename Epilogue::State state[2];
#pragma unroll
    for (int m = 0; m < 2; ++m)
      Epilogue::begin(args.epilogue, state[m],
                      SlabPlace{m0 + warp_m + 16 * m, 0, end(), args.N, 0});
    float acc[2][16][4] = {};
    const CopyA copy_a(args.a, args.lda, m0, end());
    const int rows_of_b = Config::b_is_kn ? args.K : args.N;  // of one group
    const long long matrix = ragged ? static_cast<long long>(group) * rows_of_b * args.ldb : 0;
    const CopyB copy_b(args.b + matrix, args.ldb, n0, args.N);
    const ReadA read_a(static_cast<u32>(warp_m));
    const ReadB read_b(static_cast<u32>(warp_n));
#pragma unroll
    for (int s = 0; s < Config::stages - 1; ++s) copy_stage(copy_a, copy_b, s);
    for (int step = 0; step < steps(); ++step) {
      cp_async_wait<Config::stages - 2>();
      __syncthreads();  // the stage has come for all, and the oldest has been read by all
      copy_stage(copy_a, copy_b, step + Config::stages - 1);
      multiply_stage(acc, read_a, read_b, step);
    }
    cp_async_wait<0>();
    __syncthreads();
    if constexpr (gathers_groups<Epilogue>) gather<0>(acc, state);
    finish<0>(acc, state);
  }

  template <int index>
  static FUSELINE_DEVICE Fragment<2, slab_groups> accumulated(const float (&acc)[16][4]) {
    Fragment<2, slab_groups> y;
#pragma unroll
    for (int i = 0; i < 4 * slab_groups; ++i) y.v[i] = acc[index * slab_groups + i / 4][i % 4];
    return y;
  }
  template <int index>
  FUSELINE_DEVICE Slab80<Sm80Gemm, index> slab_at(int strip) const {
    const int warp = static_cast<int>(threadIdx.x) / 32;
    const int column_warp = warp / 4;
    const int row = warp_m + 16 * strip;
    return {
        {m0 + row, n0 + warp_n + index * 8 * slab_groups, end(), args.N, 8 * slab_groups, result},
        base + warp * warp_stage_bytes,
        row,
        strip,
        static_cast<int>(threadIdx.x) % 128,
        base + warps * warp_stage_bytes + column_warp * scratch_bytes,
        1 + column_warp};
  }

  // The pass ahead of the epilogue (epilogue/gather.cuh).
  template <int index>
  FUSELINE_DEVICE void gather(const float (&acc)[2][16][4],
                              typename Epilogue::State (&state)[2]) const {
    if constexpr (index * slab_groups < 16) {
#pragma unroll
      for (int m = 0; m < 2; ++m)
        Epilogue::gather(args.epilogue, state[m], slab_at<index>(m), accumulated<index>(acc[m]));
      gather<index + 1>(acc, state);
    }
  }

  template <int index>
  FUSELINE_DEVICE void finish(const float (&acc)[2][16][4],
                              typename Epilogue::State (&state)[2]) const {
    if constexpr (index * slab_groups < 16) {
#pragma unroll
      for (int m = 0; m < 2; ++m)
        run_epilogue<Epilogue>(args.epilogue, state[m], slab_at<index>(m),
                               accumulated<index>(acc[m]));
      finish<index + 1>(acc, state);
    }
  }
};

// The body of a kernel with Config::threads threads and Sm80Gemm::shared_bytes of dynamic shared
// memory, one block per tile.
template <class Config, class Epilogue>
FUSELINE_DEVICE void gemm_sm80(const Sm80Args<Config, Epilogue>& args) {
  extern __shared__ __align__(1024) unsigned char shared[];
  Sm80Gemm<Config, Epilogue>(args, shared_address(shared)).run();
}

}  // namespace fuseline::gpu
