// D[M, N] = A[M, K] B[N, K]^T for up to 8 rows, where B is codes with a scale for each row, or for
// groups of columns of whole slices (columns_order.cuh). For sm_90: gemm_codes.cuh has all others.
//
// So few rows take as long as the weights take to come. A thread block has some columns of D for
// all of K, so that no sum goes from block to block, and 20 warps:
//
//   the producer   asks the copy engine for box after box of weights, into a ring of stages. It is
//                  one of four warps, since registers change hands between groups of four
//   16 consumers   turn slices of a box into numbers in registers and multiply them with A, which
//                  lies in shared memory whole. `row_warps` of them share the block's columns, the
//                  others take turns along K. The weights are the instruction's first operand.
//
// Then the consumers' sums are added up in the order of K, and a warp runs the epilogue for each
// strip of 32 columns.
//
// The memory system answers in order, more or less: what a block asks for behind the ring's 190 KB
// comes microseconds later. So only `early_bytes` of weights are asked for ahead of A, the scales
// and what the epilogue wants; all others follow these.
#pragma once

#include "../launch_order.cuh"
#include "../epilogue/run.cuh"
#include "../ptx/cp_async.cuh"
#include "../ptx/mbarrier.cuh"
#include "../ptx/sync.cuh"
#include "../ptx/tma.cuh"
#include "../weight_loads.cuh"
#include "columns_order.cuh"
#include "columns_strip.cuh"

namespace fuseline::gpu {

// `columns`: of D, of a thread block. `x_rows`: rows of A that shared memory has room for.
template <class Element_, class Weight_, int K_, int columns_, int x_rows_, int row_warps_>
struct CodesColumnsConfig {
  using Element = Element_;
  using Weight = Weight_;
  static constexpr int K = K_, columns = columns_, x_rows = x_rows_, row_warps = row_warps_;
  static constexpr int consumers = 16, early_bytes = 96 * 1024;
  static_assert(columns % 16 == 0 && columns >= strip_columns && columns <= 256,
                "a box has so many rows, an instruction 16");
  static_assert(x_rows == 1 || x_rows == 2 || x_rows == 4 || x_rows == 8, "rows of a lane");
  static_assert(K % 8 == 0, "16 bytes of A are copied at once");
  static_assert(Weight::group_rows == 1 && !Weight::zeros && !Weight::tensor_scale,
                "every row has scales of its own, and nothing else");
};

template <class Epilogue>
struct CodesColumnsArgs {
  TmaMap b;           // bytes; boxes of 128 × columns of a block, 128-byte swizzle
  const void* a;
  const void* scale;  // [N, groups of columns]
  StripSums sums;     // if the epilogue has sums along rows
  int M, N;
  int a_row_bytes, scale_ld;
  typename Epilogue::Params epilogue;
};

template <class Config, class Epilogue>
struct CodesColumns {
  using Args = CodesColumnsArgs<Epilogue>;
  using Element = typename Config::Element;
  using Weight = typename Config::Weight;
  using Loads = WeightLoads<Element, Weight, 2, false>;
  static constexpr int K = Config::K, columns = Config::columns, x_rows = Config::x_rows;
  static constexpr int row_warps = Config::row_warps, consumers = Config::consumers;
  static constexpr int k_warps = consumers / row_warps;
  static constexpr int threads = 32 * (consumers + 4), consumer_threads = 32 * consumers;
  static constexpr int chunk = Loads::chunk, unit = Loads::unit, eights = Loads::eights;
  static constexpr bool in_rows = Weight::group > 0;  // scales along K
  static_assert(Loads::alone && (!in_rows || Weight::group % chunk == 0), "a slice has one scale");
  static constexpr int boxes = ceil_div(K, slices_of_box * chunk);
  // Of 16 rows of weights, and those of a warp.
  static constexpr int groups = columns / 16, warp_groups = ceil_div(groups, row_warps);
  static constexpr int groups_at_once = warp_groups <= 3 ? warp_groups : 2;  // in registers
  static constexpr int strips = ceil_div(columns, strip_columns);
  static_assert(strips <= consumers && Epilogue::slab_groups == StripShape::slab_groups);

  // Shared memory: stages | A | scales | sums | stages of strips | barriers.
  static constexpr int stage_bytes = columns * codes_box_bytes;
  static constexpr int x_bytes = slices_of_box * boxes * eights * x_rows * 64;
  static constexpr int scale_bytes = Weight::scale == ScaleType::fp32 ? 4 : 2;
  static constexpr int scales_of_row = in_rows ? ceil_div(K, max_of(Weight::group, 1)) : 1;
  static constexpr int row_of_scales_bytes = ceil_div(scales_of_row * scale_bytes, 16) * 16;
  static constexpr int scales_bytes = ceil_div(in_rows ? columns * row_of_scales_bytes
                                                       : columns * 4, 128) * 128;
  static constexpr int sum_pitch = columns + 4;
  static constexpr int sums_bytes = ceil_div(k_warps * x_rows * sum_pitch * 4, 128) * 128;
  static constexpr int strip_stage_bytes = 16 * box_row_bytes;
  static constexpr int most_stages = 62, x_pieces = x_rows == 1 ? min_of(boxes, 4) : 1;
  static constexpr int barriers_bytes = 8 * (2 * most_stages + 4);
  static constexpr int other_bytes =
      x_bytes + scales_bytes + sums_bytes + strips * strip_stage_bytes + barriers_bytes;
  // Boxes go round the warps along K, and each stage must meet the same warps in every round: a
  // barrier tells a phase from the one before it alone, so that whoever left one out would take it
  // for the next.
  static constexpr int box_step = k_warps / slices_of_box;
  static constexpr int fitting = min_of(most_stages, (227 * 1024 - other_bytes) / stage_bytes);
  static constexpr int stages = fitting >= boxes ? boxes : fitting / box_step * box_step;
  static_assert(stages > 0, "the ring holds no round");
  static constexpr int early_stages = min_of(stages, max_of(1, Config::early_bytes / stage_bytes));
  static constexpr int x_at = stages * stage_bytes, scales_at = x_at + x_bytes;
  static constexpr int sums_at = scales_at + scales_bytes, strips_at = sums_at + sums_bytes;
  static constexpr int barriers_at = strips_at + strips * strip_stage_bytes;
  static constexpr int shared_bytes = barriers_at + barriers_bytes;
  static constexpr int consumers_barrier = 1;  // a named one

  using Sums = float[warp_groups][4];  // rows t and t + 8 of 16, each with two rows of A

  const Args& args;
  unsigned char* shared;
  u32 base;
  int n0, lane, warp;

  FUSELINE_DEVICE CodesColumns(const Args& a, unsigned char* s)
      : args(a),
        shared(s),
        base(shared_address(s)),
        n0(static_cast<int>(blockIdx.x) * columns),
        lane(static_cast<int>(threadIdx.x % 32)),
        warp(static_cast<int>(threadIdx.x / 32)) {}

  FUSELINE_DEVICE void run() const {
    // Sums of codes in groups, and epilogues behind them, spill with the 96 of the launch.
    constexpr int of_launch = 96, of_consumer = 112, of_others = 24;
    static_assert(consumer_threads * of_consumer + 128 * of_others <= threads * of_launch &&
                      threads * of_launch <= 65536,
                  "registers of a multiprocessor");
    if (warp >= consumers) {
      keep_registers<of_others>();
      produce();
    } else {
      take_registers<of_consumer>();
      consume();
    }
  }

  // ---- the producer ----

  FUSELINE_DEVICE u32 full(int stage) const { return base + barriers_at + 16 * stage; }
  FUSELINE_DEVICE u32 empty(int stage) const { return full(stage) + 8; }

  FUSELINE_DEVICE void ask_for(int box, int stage) const {
    mbarrier_arrive_expect(full(stage), stage_bytes);
    tma_load(base + stage * stage_bytes, args.b, box * codes_box_bytes, n0, full(stage));
  }
  FUSELINE_DEVICE void produce() const {
    const bool asks = warp == consumers && lane == 0;
    if (asks) {
      tma_prefetch_map(args.b);
      for (int s = 0; s < stages; ++s) {
        mbarrier_init(full(s), 1);
        mbarrier_init(empty(s), slices_of_box * row_warps);
      }
      mbarrier_init_fence();
      for (int box = 0; box < early_stages; ++box) ask_for(box, box);
    }
    __syncwarp();
    __syncthreads();  // the consumers have asked for theirs, and the barriers exist
    if (!asks) return;
    for (int box = early_stages; box < stages; ++box) ask_for(box, box);
    int stage = 0;
    u32 parity = 0;
    for (int box = stages; box < boxes; ++box) {
      mbarrier_wait(empty(stage), parity);
      ask_for(box, stage);
      if (++stage == stages) {
        stage = 0;
        parity ^= 1;
      }
    }
  }

  // ---- what the consumers load ----

  // One row of A comes in pieces of its columns, so that who multiplies the first need not wait for
  // the last: qkv of LLaMA-2-7B with int4 weights took 12.7 us on an H200, and 15.0 in one piece,
  // whose copies also began elsewhere in each thread block.
  // Of eight rows pieces are no gain: with int8 24.9 us, and 24.2 in one.
  FUSELINE_DEVICE u32 x_there(int piece) const {
    return base + barriers_at + 16 * most_stages + 8 * piece;
  }
  static FUSELINE_DEVICE constexpr int box_of_piece(int piece) { return boxes * piece / x_pieces; }

  FUSELINE_DEVICE void ask_for_x() const {
    if (threadIdx.x == 0) {
#pragma unroll
      for (int p = 0; p < x_pieces; ++p) mbarrier_init(x_there(p), consumer_threads);
      mbarrier_init_fence();
    }
    if constexpr (in_rows) ask_for_scales();
    named_barrier(consumers_barrier, consumer_threads);
#pragma unroll
    for (int p = 0; p < x_pieces; ++p) {
      ask_for_piece(box_of_piece(p), box_of_piece(p + 1));
      mbarrier_arrive_behind_copies(x_there(p));
    }
  }
  FUSELINE_DEVICE void ask_for_piece(int first, int last) const {
    constexpr int eights_of_box = slices_of_box * chunk / 8;
    const int eights_of_row = (last - first) * eights_of_box, all = args.M * eights_of_row;
#pragma unroll 4
    for (int i = static_cast<int>(threadIdx.x); i < all; i += consumer_threads) {
      const int row = i / eights_of_row, column = (i % eights_of_row + first * eights_of_box) * 8;
      const bool exists = column < K;
      const unsigned char* from = static_cast<const unsigned char*>(args.a) +
                                  static_cast<long long>(row) * args.a_row_bytes +
                                  (exists ? 2 * column : 0);
      cp_async_16(base + x_at + place_of_x<chunk, x_rows>(row, column), from, exists ? 16 : 0);
    }
  }
  // All scales of the block's rows; rows begin at multiples of 16 bytes.
  FUSELINE_DEVICE void ask_for_scales() const {
    constexpr int per_row = row_of_scales_bytes / 16;
    for (int i = static_cast<int>(threadIdx.x); i < columns * per_row; i += consumer_threads) {
      const int row = i / per_row, at = i % per_row * 16;
      const unsigned char* from =
          static_cast<const unsigned char*>(args.scale) +
          static_cast<long long>(min_of(n0 + row, args.N - 1)) * args.scale_ld * scale_bytes + at;
      cp_async_16(base + scales_at + row * row_of_scales_bytes + at, from, 16);
    }
  }
  // What the epilogue loads comes to L1, a line ahead of each row.
  template <class T, int slot, int each>
  FUSELINE_DEVICE void touch(const TileIn<T, slot, each>& in, int col) const {
    const int at = each * (col - in.begin) / 2;
    if (lane < args.M && at >= 0 && at < in.ld)
      touch(in.data + static_cast<long long>(lane) * in.ld + at);
  }
  template <class T, int slot>
  FUSELINE_DEVICE void touch(const ColsIn<T, slot>& in, int col) const {
    if (lane == 0 && col >= in.begin && col - in.begin < in.count) touch(in.data + col - in.begin);
  }
  static FUSELINE_DEVICE void touch(const void* p) {
    u32 unused;
    const unsigned long long word = reinterpret_cast<unsigned long long>(p) & ~3ULL;
    asm volatile("ld.global.u32 %0, [%1];" : "=r"(unused) : "l"(word));
  }

  // ---- the consumers ----

  FUSELINE_DEVICE void consume() const {
    wait_for_the_kernel_before();  // who asks for weights does not
    const int first = n0 + first_of_strip(warp, columns);
    const bool finishes = warp < strips && first < args.N;
    ask_for_x();
    const int mine = static_cast<int>(threadIdx.x);  // of the rows
    float scale = 0.0F;
    if (!in_rows && mine < columns)
      scale = load_scale<Weight::scale>(
          args.scale, static_cast<long long>(min_of(n0 + mine, args.N - 1)) * args.scale_ld);
    asm volatile("" : "+f"(scale));  // is asked for here, and wanted behind the mainloop
    State begun;
    if (finishes) {
      Epilogue::fetch(args.epilogue, [&](const auto& in) { touch(in, first); });
      Epilogue::begin(args.epilogue, begun, SlabPlace{0, 0, args.M, args.N, 0});
    }
    __syncthreads();  // nobody waits for loads before
    if (parks_state && finishes) parked_state() = begun;

    Sums sums;
#pragma unroll
    for (auto& of_group : sums)
#pragma unroll
      for (float& x : of_group) x = 0.0F;
    multiply(sums);
    if (!in_rows && mine < columns) store_shared(base + scales_at + 4 * mine, scale);
    leave(sums);
    named_barrier(consumers_barrier, consumer_threads);
    add_up();
    named_barrier(consumers_barrier, consumer_threads);
    if (finishes) finish(first, begun);
  }

  FUSELINE_DEVICE void multiply(Sums& sums) const {
    const SlicesOfWarp slices = slices_of_warp(warp % k_warps, k_warps);
    int stage = slices.first_box % stages;
    u32 parity = 0;
    int piece = 0;
#pragma unroll 1
    for (int box = slices.first_box; box < boxes; box += slices.step) {
      for (; piece < x_pieces && box >= box_of_piece(piece); ++piece)
        mbarrier_wait(x_there(piece), 0);
      mbarrier_wait(full(stage), parity);
      multiply_slice(sums, stage, slices_of_box * box + slices.slice, slices.slice);
      stage += slices.step;
      if (stage >= stages) {
        stage -= stages;
        parity ^= 1;
      }
    }
  }

  FUSELINE_DEVICE bool has_group(int g) const {
    return groups % row_warps == 0 || warp / k_warps * warp_groups + g < groups;
  }
  FUSELINE_DEVICE void multiply_slice(Sums& sums, int stage, int number, int slice) const {
    const int first_row = warp / k_warps * warp_groups * 16;
    const u32 codes = base + stage * stage_bytes + first_row * codes_box_bytes +
                      lane_of_box(lane, slice);
    const u32 x = base + x_at + number * (eights * x_rows * 64) + lane * 16;
    const u32 scales = base + scales_at + (first_row + row_of_four(lane / 4)) * row_of_scales_bytes +
                       min_of(number * chunk, K - 1) / max_of(Weight::group, 1) * scale_bytes;
    u32 a[eights][4];
#pragma unroll
    for (int e = 0; e < eights; ++e) {
      uint4 v = make_uint4(0U, 0U, 0U, 0U);
      if (x_rows == 8 || lane < 4 * x_rows) v = load_shared_16(x + e * x_rows * 64);
      if (x_rows > 1 && lane / 4 >= args.M) v = make_uint4(0U, 0U, 0U, 0U);
      v = in_order_of_codes<Weight::codes>(v);
      a[e][0] = v.x;
      a[e][1] = v.y;
      a[e][2] = v.z;
      a[e][3] = v.w;
    }
#pragma unroll
    for (int begin = 0; begin < warp_groups; begin += groups_at_once) {
      typename Loads::Load load[groups_at_once];
#pragma unroll
      for (int i = 0; i < groups_at_once; ++i)
        if (begin + i < warp_groups && has_group(begin + i)) {
          load[i].codes[0] = load_shared_16(codes + (begin + i) * 16 * codes_box_bytes);
          load[i].codes[1] = load_shared_16(codes + ((begin + i) * 16 + 8) * codes_box_bytes);
        }
      if (begin + groups_at_once >= warp_groups) {
        __syncwarp();
        if (lane == 0) mbarrier_arrive(empty(stage));
      }
#pragma unroll
      for (int i = 0; i < groups_at_once; ++i)
        if (begin + i < warp_groups && has_group(begin + i))
          multiply_group(sums[begin + i], load[i], a, scales + (begin + i) * 16 * row_of_scales_bytes);
    }
  }
  // 16 rows of weights; `scales`: the place of their first's.
  FUSELINE_DEVICE void multiply_group(float (&sums)[4], const typename Loads::Load& load,
                                      const u32 (&a)[eights][4], u32 scales) const {
    float part[2][4] = {};  // two chains of instructions
#pragma unroll
    for (int e = 0; e < eights; ++e) {
      u32 above[4], below[4];
      Loads::pairs(above, load, 0, e);
      Loads::pairs(below, load, 1, e);
#pragma unroll
      for (int i = 0; i < 4; i += 2) {
        const u32 words[4] = {above[i], below[i], above[i + 1], below[i + 1]};
        mma_16x8x16<Element>(in_rows ? part[i / 2] : sums, words, a[e][i], a[e][i + 1]);
      }
    }
    if constexpr (in_rows) {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const float scale = scale_at(scales + 8 * half * row_of_scales_bytes);
#pragma unroll
        for (int i = 2 * half; i < 2 * half + 2; ++i) sums[i] += (part[0][i] + part[1][i]) * scale;
      }
    }
  }
  static FUSELINE_DEVICE float scale_at(u32 at) {
    u32 bits = 0;
    if constexpr (scale_bytes == 4) {
      bits = load_shared(at);
    } else {
      u16 half;
      asm volatile("ld.shared.u16 %0, [%1];" : "=h"(half) : "r"(at) : "memory");
      bits = half;
    }
    return scale_of_bits<Weight::scale>(bits);
  }

  // ---- sums and epilogue ----

  FUSELINE_DEVICE float* sums_of(int k_warp, int row) const {
    return reinterpret_cast<float*>(shared + sums_at) + (k_warp * x_rows + row) * sum_pitch;
  }
  FUSELINE_DEVICE void leave(const Sums& sums) const {
#pragma unroll
    for (int g = 0; g < warp_groups; ++g) {
      if (!has_group(g)) continue;
      const int column = (warp / k_warps * warp_groups + g) * 16 + row_of_four(lane / 4);
#pragma unroll
      for (int i = 0; i < 4; ++i)
        if (const int row = lane % 4 * 2 + i % 2; row < args.M)
          sums_of(warp % k_warps, row)[column + i / 2 * 8] = sums[g][i];
    }
  }
  // The sums of all warps along K, in their order, come to where the first had its own.
  FUSELINE_DEVICE void add_up() const {
    for (int i = static_cast<int>(threadIdx.x); i < args.M * columns; i += consumer_threads) {
      const int row = i / columns, column = i % columns;
      float total = 0.0F;
#pragma unroll
      for (int k = 0; k < k_warps; ++k) total += sums_of(k, row)[column];
      if constexpr (!in_rows) total *= load_shared_float(base + scales_at + 4 * column);
      sums_of(0, row)[column] = total;
    }
  }
  // What the epilogue keeps of its rows lies in the strip's stage while the registers are needed,
  // if it fits.
  using State = typename Epilogue::State;
  static constexpr bool parks_state = 32 * sizeof(State) <= strip_stage_bytes;
  FUSELINE_DEVICE State& parked_state() const {
    return reinterpret_cast<State*>(shared + strips_at + warp * strip_stage_bytes)[lane];
  }

  FUSELINE_DEVICE void finish(int first, const State& begun) const {
    Fragment<2, StripShape::slab_groups> y;
    const float* const from = sums_of(0, min_of(lane / 4, x_rows - 1)) + first - n0 + lane % 4 * 2;
#pragma unroll
    for (int g = 0; g < StripShape::slab_groups; ++g) {
      float2 v = make_float2(0.0F, 0.0F);
      if (lane / 4 < args.M) v = *reinterpret_cast<const float2*>(from + 8 * g);
      y.at(0, g, 0) = v.x;
      y.at(0, g, 1) = v.y;
      y.at(1, g, 0) = y.at(1, g, 1) = 0.0F;
    }
    State kept = begun;
    if constexpr (parks_state) kept = parked_state();
    __syncwarp();
    const ColumnsStrip strip({0, first, args.M, args.N, strip_columns, 0},
                             base + strips_at + warp * strip_stage_bytes, args.sums);
    run_epilogue<Epilogue>(args.epilogue, kept, strip, y);
  }
};

// The body of a kernel with CodesColumns::threads threads and CodesColumns::shared_bytes of dynamic
// shared memory: a thread block for every `columns` columns.
template <class Config, class Epilogue>
FUSELINE_DEVICE void codes_columns(const CodesColumnsArgs<Epilogue>& args) {
  extern __shared__ __align__(1024) unsigned char shared[];
  CodesColumns<Config, Epilogue>(args, shared).run();
}

}  // namespace fuseline::gpu
