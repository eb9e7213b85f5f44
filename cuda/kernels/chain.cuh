// Two products in one kernel, for at most 8 rows (N a multiple of 4): y[M, N] = g(a[M, K] b[R,
// K]^T) c[N, F]^T, where h = g(a b^T) has F columns and never leaves its thread block. Ampere and
// Hopper run the same code.
//
// Thread block i has columns [i · columns, (i + 1) · columns) of h.
//   1. Its warps share K. Each multiplies all of the block's rows of b with its columns of a.
//   2. The warps' sums are added in order, the first epilogue runs, and h goes to shared memory.
//   3. Its warps share the rows of c. The block's columns of c and h give a part of each element of
//      y, which goes to `parts` in global memory.
//   4. When the parts of all blocks are there, blocks add them in order, 128 columns of a row at a
//      time, and run the second epilogue.
// So all blocks must be on the GPU at the same time. There is at most one for each multiprocessor, a
// stream runs one launch after the other, and the host refuses a GPU that cannot hold them.
//
// Both weights go from global memory to registers, once, and straight into mma.sync as the operand
// of 16 rows: a and h are the operand of 8. Lane l loads 16 bytes of row l / 4 and of row l / 4 +
// 8, columns 8 (l mod 4) onward of 32. The tensor cores do not care in which order columns are
// summed, as long as both operands have the same order, so these registers need no shuffle:
//
//   columns of memory, lane 0:    0 1 | 2 3 | 4 5 | 6 7
//   k of the instruction:         0 1 | 8 9 | 0 1 | 8 9     first two pairs: one mma, then another
//
// The first loads of c are under way while h is finished.
#pragma once

#include "launch_order.cuh"
#include "block/waiting.cuh"
#include "chain_order.cuh"
#include "epilogue/store.cuh"
#include "sm80/tile_io.cuh"

namespace fuseline::gpu {

template <class Element, class First, class Second>
struct ChainArgs {
  const Element* a;
  const Element* b;
  const Element* c;
  float* parts;  // [blocks, M, N]
  u32* arrived;  // 0 before the first launch; see wait_for_all()
  int M, K, F, N;
  int lda, ldb, ldc;
  int columns;  // of h in a block, a multiple of 8
  typename First::Params first;
  typename Second::Params second;
};

// 16 bytes that nobody loads again, or zeros. A predicate, because a branch around each load would
// keep the next ones waiting.
FUSELINE_DEVICE uint4 load_once(const void* from, bool there) {
  uint4 v;
  asm volatile(
      "{\n.reg .pred p;\nsetp.ne.u32 p, %5, 0;\n"
      "mov.u32 %0, 0;\nmov.u32 %1, 0;\nmov.u32 %2, 0;\nmov.u32 %3, 0;\n"
      "@p ld.global.nc.L1::no_allocate.v4.u32 {%0, %1, %2, %3}, [%4];\n}"
      : "=&r"(v.x), "=&r"(v.y), "=&r"(v.z), "=&r"(v.w)
      : "l"(from), "r"(static_cast<u32>(there)));
  return v;
}

// Tiles of 16 rows of a weight, one after the other, in steps of 32 columns, on their way through a
// warp: `ahead` steps are loaded while the ones before are multiplied.
template <class Element>
class WeightStream {
 public:
  static constexpr int ahead = 8;
  static constexpr int step_columns = chain_order::step_columns;
  static constexpr int tile_rows = chain_order::tile_rows;

  // Rows of the weight: tile t of the warp begins at (first_tile + t · tile_step) · 16, and no row
  // from `rows` on exists. Columns [begin, end) are multiplied.
  FUSELINE_DEVICE WeightStream(const Element* weight, int ld, int rows, int first_tile,
                               int tile_step, int begin, int end)
      : weight_(weight),
        ld_(ld),
        rows_(rows),
        first_tile_(first_tile),
        tile_step_(tile_step),
        tiles_(max_of(0, ceil_div(ceil_div(rows, tile_rows) - first_tile, tile_step))),
        begin_(begin),
        end_(end),
        steps_(max_of(1, ceil_div(end - begin, step_columns))) {
    fetch();
  }

  // Multiplies everything with x: 8 rows in shared memory, `row_bytes` apart, whose column `begin`
  // is at `x`. Columns up to the next multiple of 32 are there, and 0. Calls done(row, sums) behind
  // each tile: sums as mma.sync has them, rows of the weight from `row` on by rows of x.
  template <class Done>
  FUSELINE_DEVICE void multiply(u32 x, u32 row_bytes, Done&& done) {
    const int lane = static_cast<int>(threadIdx.x % 32);
    const u32 mine = x + static_cast<u32>(chain_order::x_row(lane)) * row_bytes +
                     static_cast<u32>(chain_order::first_column(lane)) * 2;
    float sums[4] = {};
    int tile = 0, step = 0;
    FUSELINE_NO_UNROLL
    while (tile < tiles_) {
      uint4 now[2 * ahead];
      FUSELINE_UNROLL
      for (int i = 0; i < 2 * ahead; ++i) now[i] = next_[i];
      fetch();
      FUSELINE_UNROLL
      for (int i = 0; i < ahead; ++i) {
        if (tile >= tiles_) break;
        const uint4 v = load_shared_16(mine + static_cast<u32>(step) * (step_columns * 2));
        const uint4 &low = now[2 * i], &high = now[2 * i + 1];  // rows of the two halves
        mma_16x8x16<Element>(sums, {low.x, high.x, low.y, high.y}, v.x, v.y);
        mma_16x8x16<Element>(sums, {low.z, high.z, low.w, high.w}, v.z, v.w);
        if (++step < steps_) continue;
        done((first_tile_ + tile * tile_step_) * tile_rows, sums);
        FUSELINE_UNROLL
        for (float& sum : sums) sum = 0;
        step = 0;
        ++tile;
      }
    }
  }

 private:
  FUSELINE_DEVICE void fetch() {
    const int lane = static_cast<int>(threadIdx.x % 32);
    FUSELINE_UNROLL
    for (int i = 0; i < ahead; ++i) {
      const int row =
          (first_tile_ + load_tile_ * tile_step_) * tile_rows + chain_order::weight_row(lane, 0);
      const int col = begin_ + load_step_ * step_columns + chain_order::first_column(lane);
      const Element* from = weight_ + static_cast<long long>(row) * ld_ + col;
      const bool there = load_tile_ < tiles_ && col < end_;
      FUSELINE_UNROLL
      for (int half = 0; half < 2; ++half)
        next_[2 * i + half] = load_once(from + static_cast<long long>(8 * half) * ld_,
                                        there && row + 8 * half < rows_);
      if (++load_step_ < steps_) continue;
      load_step_ = 0;
      ++load_tile_;
    }
  }

  const Element* weight_;
  int ld_, rows_, first_tile_, tile_step_, tiles_, begin_, end_, steps_;
  int load_tile_ = 0, load_step_ = 0;
  uint4 next_[2 * ahead];
};

// What the epilogues see of a chain: 16 rows, of which 8 can exist, and a warp with all 128
// columns.
template <class Epilogue>
struct ChainShape {
  static constexpr int tile_rows = 16, tile_threads = 32, strips_per_warp = 1;
  static constexpr int slab_groups = Epilogue::slab_groups, scratch_step = 0;
  static constexpr bool batched = false;
};

// `pairs`: rows of b for each column of h, 1 or 2. First::keep(params, h, ld, cols) lets the first
// epilogue store h there.
template <class Element, class First, class Second, int pairs>
struct Chain {
  using Args = ChainArgs<Element, First, Second>;
  static constexpr int warps = 8, threads = 32 * warps, sum_columns = 128;
  static constexpr int most_rows = chain_order::most_rows;

  // Rows of 16-bit numbers in shared memory. A row begins 64 bytes behind a multiple of 128: the
  // eight lanes of a phase of ldmatrix's width then meet all banks once.
  static FUSELINE_HD constexpr int row_bytes(int columns) {
    return ceil_div(columns * 2, 128) * 128 + 64;
  }
  static FUSELINE_HD constexpr int first_rows(int columns) {
    return ceil_div(columns * pairs, 16) * 16;
  }
  static FUSELINE_HD constexpr int sums_bytes(int columns, int M) {
    return max_of(warps * first_rows(columns) * M, warps * sum_columns) * 4;
  }
  static FUSELINE_HD constexpr int shared_bytes(int K, int columns, int M) {
    return warps * warp_stage_bytes + most_rows * (row_bytes(K) + row_bytes(columns)) +
           sums_bytes(columns, M);
  }

  const Args& args;
  u32 stage, x, h, sums;
  Element* h_data;
  int warp, lane, begin, end;  // columns of h

  FUSELINE_DEVICE Chain(const Args& a, unsigned char* shared) : args(a) {
    stage = shared_address(shared);
    x = stage + warps * warp_stage_bytes;
    h = x + static_cast<u32>(most_rows * row_bytes(a.K));
    sums = h + static_cast<u32>(most_rows * row_bytes(a.columns));
    h_data = reinterpret_cast<Element*>(shared + (h - stage));
    warp = static_cast<int>(threadIdx.x) / 32;
    lane = static_cast<int>(threadIdx.x) % 32;
    begin = static_cast<int>(blockIdx.x) * a.columns;
    end = min_of(a.F, begin + a.columns);
  }

  FUSELINE_DEVICE void zero(u32 from, int bytes) const {
    for (int i = static_cast<int>(threadIdx.x) * 16; i < bytes; i += threads * 16)
      store_shared_16(from + static_cast<u32>(i), uint4{0, 0, 0, 0});
  }

  FUSELINE_DEVICE void load_operand() const {
    zero(x, most_rows * (row_bytes(args.K) + row_bytes(args.columns)));
    __syncthreads();
    const int chunks = args.K / 8;
    for (int i = static_cast<int>(threadIdx.x); i < args.M * chunks; i += threads) {
      const int row = i / chunks, chunk = i - row * chunks;
      const auto* from = args.a + static_cast<long long>(row) * args.lda + chunk * 8;
      store_shared_16(x + static_cast<u32>(row * row_bytes(args.K) + chunk * 16),
                      *reinterpret_cast<const uint4*>(from));
    }
    __syncthreads();
  }

  // Where sum (row of b, row of a) of a warp lies.
  FUSELINE_DEVICE u32 sum_at(int of_warp, int row, int m) const {
    const int rows = first_rows(args.columns);
    return sums + 4U * static_cast<u32>((of_warp * args.M + m) * rows + row);
  }

  FUSELINE_DEVICE void first_product() const {
    const int steps = ceil_div(args.K, WeightStream<Element>::step_columns);
    const int each = ceil_div(steps, warps) * WeightStream<Element>::step_columns;
    const int from = min_of(args.K, warp * each), to = min_of(args.K, from + each);
    const int rows = (end - begin) * pairs;
    WeightStream<Element> stream(args.b + static_cast<long long>(begin * pairs) * args.ldb,
                                 args.ldb, rows, 0, 1, from, to);
    stream.multiply(x + static_cast<u32>(from) * 2, static_cast<u32>(row_bytes(args.K)),
                    [&](int row, const float(&d)[4]) {
                      FUSELINE_UNROLL
                      for (int i = 0; i < 4; ++i) {
                        const int m = chain_order::sum_x_row(lane, i);
                        if (m < args.M)
                          store_shared(sum_at(warp, row + chain_order::sum_weight_row(lane, i), m),
                                       d[i]);
                      }
                    });
  }

  template <class Epilogue, int index>
  FUSELINE_DEVICE Slab80<ChainShape<Epilogue>, index> slab_at(int col, int cols) const {
    return {{0, col, args.M, cols, 8 * Epilogue::slab_groups},
            stage + static_cast<u32>(warp * warp_stage_bytes),
            0,
            0,
            lane,
            0,
            1 + warp};
  }

  // The first epilogue, on the sums of all warps, in order; h lies in shared memory.
  FUSELINE_DEVICE void make_h() const {
    constexpr int span = 8 * First::slab_groups;
    typename First::Params params = args.first;
    const int ld = row_bytes(args.columns) / 2;
    First::keep(params, h_data - begin, ld, end);
    typename First::State state;
    First::begin(params, state, SlabPlace{0, 0, args.M, args.F * pairs, 0});
    const int first = begin * pairs, all = end * pairs;
    for (int at = warp * span; first + at < all; at += warps * span) {
      Fragment<2, First::slab_groups> y;
      for_each_element<decltype(y)>([&](int half, int group, int e) {
        const int m = fragment_row(lane, half), row = at + fragment_col(2, lane, group, e);
        float sum = 0;
        if (m < args.M && first + row < all) {
          FUSELINE_UNROLL
          for (int w = 0; w < warps; ++w) sum += load_shared_float(sum_at(w, row, m));
        }
        y.at(half, group, e) = sum;
      });
      First::run(params, state, slab_at<First, 0>(first + at, all), y);
    }
  }

  // Every block adds to a counter. All together add 2^31, whichever comes last: so the highest bit
  // changes once in a launch, when all are here, and the lower ones are 0 again for the next launch.
  // It may go on for ever, and nobody has to reset it.
  FUSELINE_DEVICE void wait_for_all() const {
    constexpr u32 highest = 1U << 31;
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0) {
      const u32 mine = blockIdx.x == 0 ? highest - (gridDim.x - 1) : 1U;
      const u32 before = atomicAdd(args.arrived, mine);
      Patience patience;
      while (((load_acquire(args.arrived) ^ before) & highest) == 0) patience.lose();
      fence_gpu();
    }
    __syncthreads();
  }

  // Row m of 128 columns of y, whose sums lie in shared memory.
  template <int index>
  FUSELINE_DEVICE void finish(int m, int col, typename Second::State& state) const {
    constexpr int span = 8 * Second::slab_groups;
    if constexpr (index * span < sum_columns) {
      Fragment<2, Second::slab_groups> y;
      for_each_element<decltype(y)>([&](int half, int group, int e) {
        const int c = index * span + fragment_col(2, lane, group, e);
        float sum = 0;
        if (fragment_row(lane, half) == 0) {
          FUSELINE_UNROLL
          for (int w = 0; w < warps; ++w)
            sum += load_shared_float(sums + 4U * static_cast<u32>(w * sum_columns + c));
        }
        y.at(half, group, e) = sum;
      });
      auto slab = slab_at<Second, index>(col + index * span, args.N);
      slab.row = m;
      slab.rows = m + 1;
      Second::run(args.second, state, slab, y);
      finish<index + 1>(m, col, state);
    }
  }

  // The parts of all blocks: each warp adds those of some blocks, in their order, four columns a
  // lane. Then one warp adds the warps' sums and runs the second epilogue.
  FUSELINE_DEVICE void sum_parts(int m, int col) const {
    const int blocks = static_cast<int>(gridDim.x), each = ceil_div(blocks, warps);
    const int to = min_of(blocks, (warp + 1) * each);
    const long long step = static_cast<long long>(args.M) * args.N;
    const float* from = args.parts + static_cast<long long>(m) * args.N + col + lane * 4;
    float4 sum{0, 0, 0, 0};
    if (col + lane * 4 < args.N) {
#pragma unroll 8
      for (int block = warp * each; block < to; ++block) {
        const float4 v = __ldcg(reinterpret_cast<const float4*>(from + block * step));
        sum.x += v.x;
        sum.y += v.y;
        sum.z += v.z;
        sum.w += v.w;
      }
    }
    store_shared_16(sums + 4U * static_cast<u32>(warp * sum_columns + lane * 4),
                    uint4{__float_as_uint(sum.x), __float_as_uint(sum.y), __float_as_uint(sum.z),
                          __float_as_uint(sum.w)});
    __syncthreads();
    if (warp == 0) {
      typename Second::State state;
      Second::begin(args.second, state, SlabPlace{m, 0, m + 1, args.N, 0});
      finish<0>(m, col, state);
    }
    __syncthreads();
  }

  FUSELINE_DEVICE void run() const {
    load_operand();
    first_product();
    WeightStream<Element> stream(args.c, args.ldc, args.N, warp, warps, begin, end);
    __syncthreads();
    make_h();
    __syncthreads();
    float* mine = args.parts + static_cast<long long>(blockIdx.x) * args.M * args.N;
    stream.multiply(h, static_cast<u32>(row_bytes(args.columns)), [&](int row, const float(&d)[4]) {
      FUSELINE_UNROLL
      for (int i = 0; i < 4; ++i) {
        const int m = chain_order::sum_x_row(lane, i);
        const int n = row + chain_order::sum_weight_row(lane, i);
        if (m < args.M && n < args.N) mine[static_cast<long long>(m) * args.N + n] = d[i];
      }
    });
    wait_for_all();
    const int places = ceil_div(args.N, sum_columns);
    for (int i = static_cast<int>(blockIdx.x); i < args.M * places;
         i += static_cast<int>(gridDim.x))
      sum_parts(i / places, i % places * sum_columns);
  }
};

}  // namespace fuseline::gpu
