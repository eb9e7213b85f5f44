// Attention's backward pass on Hopper: dq, dk and dv from q, k, v, dy, the rows' log-sum-exp and
// delta = rowsum(dy · y). With p = exp(scale · q k^T - lse):
//
//   ds = p ∘ (dy v^T - delta)      dq = scale · ds k      dk = scale · ds^T q      dv = p^T dy
//
// Two passes of one kernel. A pair of tiles stays in shared memory, pairs of blocks move past it:
//
//   stays   moves      s = stay_1 move_1^T   dp = stay_2 move_2^T   sums
//   q, dy   k, v       q k^T                 dy v^T                 dq += ds move_1
//   k, v    q, dy      k q^T (transposed)    v dy^T                 dk += ds move_1, dv += p move_2
//
// Every result is summed in the registers of one warpgroup in a fixed order: no atomics, no zeroed
// workspace, the same bits in every run. The price is that s and dp are computed twice: 7 products
// instead of 5. In return no sum of dq leaves the chip, and warpgroups never wait for each other.
//
// Thread blocks are built as in forward_sm90.cuh: a producer warp, two consumer warpgroups with 64
// rows of the tile each, persistent.
#pragma once

#include "../ptx/sync.cuh"
#include "../ptx/tma.cuh"
#include "../sm90/ring_order.cuh"
#include "gradient_work.cuh"
#include "online_softmax.cuh"
#include "staying_tile.cuh"
#include "tickets.cuh"
#include "tile_rows.cuh"
#include "wgmma_registers.cuh"

namespace fuseline::gpu {

// Boxes of the tensor maps: 128 rows (stay) or 64 (move) of 64 columns, 128-byte swizzle.
template <class Out>
struct AttentionGradientArgs {
  TmaMap stay_1, stay_2, move_1, move_2;
  const float *log_sum_exp, *delta;  // [B·H·T]
  Out *out_1, *out_2;                // dq | dk, dv: row b·rows + r, columns head·d onward
  long long out_1_ld, out_2_ld;
  AttentionShape shape;
  AttentionOrder order;  // attention_gradient_order(shape, 128, d, ...)
  Tickets tickets;
  int per_query_head;  // dk, dv are not summed over the heads that share a key: columns of H heads
  int log_sum_exp_ld = 1, delta_ld = 1;  // numbers from one row's to the next
};

// When a block's products are queued. Both forms add the same numbers in the same order.
//   late:   s, then dp behind the exponentials: two sums of many columns leave no registers for more
//   early:  s and dp together, so that the exponentials have two products beside them
enum class GradientForm { late, early };
template <int d, bool keys_stay>
constexpr GradientForm gradient_form =
    keys_stay && d > 96 ? GradientForm::late : GradientForm::early;
// How many of the two tiles that stay are held in registers (staying_tile.cuh): as many as fit, and
// no more than made it faster on an H100 (cuda/bench/gradient_variants.cu).
template <int d, bool keys_stay>
constexpr int tiles_in_registers = keys_stay ? (d <= 80 ? 2 : d <= 112 ? 1 : 0) : d <= 64 ? 2 : 1;

template <class Element, int d, bool keys_stay, class Out,
          GradientForm form = gradient_form<d, keys_stay>,
          int held = tiles_in_registers<d, keys_stay>>
struct AttentionGradientSm90 {
  static constexpr bool early = form != GradientForm::late;
  static_assert(keys_stay || early);
  static_assert(wgmma_gradient_head<d>, "other head widths: generic.cuh");
  using Args = AttentionGradientArgs<Out>;
  static constexpr int threads = 384;
  static constexpr int tile_rows = 128, block_rows = 64;

  // Shared memory: two pairs of tiles (results leave through them) | ring of pairs of blocks |
  // the blocks' statistics | barriers.
  static constexpr int panels = head_panels<d>;
  static constexpr int stay_panel = tile_rows * 128, move_panel = block_rows * 128;
  static constexpr int tile_bytes = panels * stay_panel, block_bytes = panels * move_panel;
  static constexpr int stages = panels == 2 ? 3 : 4;
  static constexpr int stats_bytes = 2 * block_rows * 4;
  static constexpr int ring_offset = 4 * tile_bytes;
  static constexpr int stats_offset = ring_offset + stages * 2 * block_bytes;
  static constexpr int barrier_offset = stats_offset + stages * stats_bytes;
  static constexpr int shared_bytes = barrier_offset + 128;
  using Place = RingPlace<stages>;
  using TilePlace = RingPlace<2>;

  const Args& args;
  u32 base;
  int group;  // warpgroup

  FUSELINE_DEVICE AttentionGradientSm90(const Args& a, u32 shared)
      : args(a),
        base(shared),
        group(__shfl_sync(0xffffffffU, static_cast<int>(threadIdx.x / 128), 0)) {}

  FUSELINE_DEVICE u32 tiles_at(u32 slot) const { return base + slot * 2 * tile_bytes; }
  FUSELINE_DEVICE u32 stage_at(u32 stage) const {
    return base + ring_offset + stage * 2 * block_bytes;
  }
  FUSELINE_DEVICE u32 stats_at(u32 stage) const {
    return base + stats_offset + stage * stats_bytes;
  }
  FUSELINE_DEVICE u32 full(u32 stage) const { return base + barrier_offset + 8 * stage; }
  FUSELINE_DEVICE u32 empty(u32 stage) const { return full(stages + stage); }
  FUSELINE_DEVICE u32 tiles_full(u32 slot) const { return full(2 * stages + slot); }
  FUSELINE_DEVICE u32 tiles_empty(u32 slot) const { return full(2 * stages + 2 + slot); }
  FUSELINE_DEVICE u32 item_at(u32 slot) const { return full(2 * stages + 4) + 4 * slot; }

  FUSELINE_DEVICE void run() {
    if (threadIdx.x == 0) {
      for (int s = 0; s < stages; ++s) {
        mbarrier_init(full(s), keys_stay ? 33 : 1);      // the copies' thread, the statistics' warp
        mbarrier_init(empty(s), 8 * arrivals_per_warp);  // the consumers' warps
      }
      for (int s = 0; s < 2; ++s) {
        mbarrier_init(tiles_full(s), 1);
        mbarrier_init(tiles_empty(s),
                      (keys_stay ? 9 : 8) * arrivals_per_warp);  // and the statistics' warp
      }
      mbarrier_init_fence();
    }
    __syncthreads();
    if (group == 0) {
      keep_registers<40>();
      if (threadIdx.x == 0) produce();
      if (keys_stay && threadIdx.x / 32 == 1) produce_stats();
    } else {
      take_registers<232>();
      consume(group - 1);
    }
  }

  FUSELINE_DEVICE GradientWork work(int index) const {
    return gradient_work<keys_stay>(args.shape, args.order, args.per_query_head, index, tile_rows,
                                    block_rows);
  }
  // The item whose tiles are in the slot, for a whole warp.
  FUSELINE_DEVICE int item_in(u32 slot) const {
    const u32 index = threadIdx.x % 32 == 0 ? load_shared(item_at(slot)) : 0U;
    return static_cast<int>(__shfl_sync(0xffffffffU, index, 0));
  }

  // ---- producers: one thread for the copies, one warp for the blocks' statistics ----

  FUSELINE_DEVICE int key_head(int query_head) const { return query_head / args.shape.shared_by(); }

  FUSELINE_DEVICE void produce() const {
    const AttentionShape& s = args.shape;
    Place place;
    for (TilePlace slot;; slot.next()) {
      const u32 bar = tiles_full(slot.stage);
      mbarrier_wait(tiles_empty(slot.stage), slot.parity ^ 1);
      const int index = draw_ticket(args.tickets, args.order.items());
      store_shared(item_at(slot.stage), static_cast<u32>(index));
      if (index >= args.order.items()) {
        mbarrier_arrive(bar);
        return;
      }
      const GradientWork w = work(index);
      mbarrier_arrive_expect(bar, 2 * tile_bytes);
      const bool own_head = !keys_stay || args.per_query_head == 0;
      send(tiles_at(slot.stage), stay_panel, tile_bytes, args.stay_1, args.stay_2,
           own_head ? w.stay_head : key_head(w.stay_head),
           w.batch * (keys_stay ? s.kv_rows : s.q_tokens) + w.tile * tile_rows, bar);
      const int first = w.batch * (keys_stay ? s.q_tokens : s.kv_rows);
      for (int h = w.first_head; h < w.first_head + w.heads; ++h)
        for (int block = w.first; block < w.end; ++block) {
          mbarrier_wait(empty(place.stage), place.parity ^ 1);
          mbarrier_arrive_expect(full(place.stage), 2 * block_bytes);
          send(stage_at(place.stage), move_panel, block_bytes, args.move_1, args.move_2,
               keys_stay ? h : key_head(h), first + block * block_rows, full(place.stage));
          place.next();
        }
    }
  }
  FUSELINE_DEVICE static void send(u32 to, int panel, int second, const TmaMap& map_1,
                                   const TmaMap& map_2, int head, int row, u32 barrier) {
#pragma unroll
    for (int p = 0; p < panels; ++p) {
      tma_load(to + p * panel, map_1, head * d + 64 * p, row, barrier);
      tma_load(to + second + p * panel, map_2, head * d + 64 * p, row, barrier);
    }
  }
  // Of each block's 64 queries: log-sum-exp in units of ln 2, then delta.
  FUSELINE_DEVICE void produce_stats() const {
    const int tokens = args.shape.q_tokens;
    const int lane = static_cast<int>(threadIdx.x % 32);
    Place place;
    for (TilePlace slot;; slot.next()) {
      mbarrier_wait(tiles_full(slot.stage), slot.parity);
      const int index = item_in(slot.stage);
      if (index >= args.order.items()) return;
      release(tiles_empty(slot.stage));
      const GradientWork w = work(index);
      for (int h = w.first_head; h < w.first_head + w.heads; ++h) {
        const long long head = (static_cast<long long>(w.batch) * args.shape.heads + h) * tokens;
        for (int block = w.first; block < w.end; ++block) {
          mbarrier_wait(empty(place.stage), place.parity ^ 1);
          const u32 to = stats_at(place.stage);
#pragma unroll
          for (int i = lane; i < block_rows; i += 32) {
            const int t = block * block_rows + i;
            store_shared(
                to + 4 * i,
                t < tokens ? base_2(args.log_sum_exp[(head + t) * args.log_sum_exp_ld]) : 0.0F);
            store_shared(to + 4 * (block_rows + i),
                         t < tokens ? args.delta[(head + t) * args.delta_ld] : 0.0F);
          }
          mbarrier_arrive(full(place.stage));
          place.next();
        }
      }
    }
  }
  // A query that sees no key has lse = -inf; its scores are all masked.
  FUSELINE_DEVICE static float base_2(float lse) {
    return lse == minus_infinity ? 0.0F : lse * log2_of_e;
  }

  // ---- consumers ----

  using Scores = float[block_rows / 2];
  using Sum = float[d / 2];
  using Rounded = u32[block_rows / 16][4];

  // Every thread that reads statistics says so itself, and with keys_stay all do.
  static constexpr int arrivals_per_warp = keys_stay ? 32 : 1;
  FUSELINE_DEVICE static void release(u32 barrier) {
    if (keys_stay || threadIdx.x % 32 == 0) mbarrier_arrive(barrier);
  }
  FUSELINE_DEVICE static void start_sum(Sum& sum, const Rounded& x, u32 move) {
    wgmma_fence();
#pragma unroll
    for (int i = 0; i < block_rows / 16; ++i)
      WgmmaRegisters<Element, d, 1>::run(sum, x[i], wgmma_tile(move + i * 16 * 128, move_panel), 1);
    wgmma_commit();
  }
  FUSELINE_DEVICE static void round(Rounded& to, const Scores& from) {
#pragma unroll
    for (int i = 0; i < block_rows / 16; ++i)
#pragma unroll
      for (int w = 0; w < 4; ++w)
        to[i][w] = pack<Element>(from[8 * i + 2 * w], from[8 * i + 2 * w + 1]);
  }
  FUSELINE_DEVICE static void pin(Rounded& x) {
#pragma unroll
    for (int i = 0; i < block_rows / 16; ++i)
#pragma unroll
      for (int w = 0; w < 4; ++w) asm volatile("" : "+r"(x[i][w])::"memory");
  }

  // Statistics of this thread's rows (queries stay), or of its columns in a block.
  struct RowStats {
    float lse[2] = {0.0F, 0.0F}, delta[2] = {0.0F, 0.0F};
  };
  FUSELINE_DEVICE RowStats row_stats(const GradientWork& w, int row) const {
    RowStats out;
    if constexpr (!keys_stay) {
      const long long first =
          (static_cast<long long>(w.batch) * args.shape.heads + w.stay_head) * args.shape.q_tokens;
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const int t = row + 8 * half;
        if (t >= args.shape.q_tokens) continue;
        out.lse[half] = base_2(args.log_sum_exp[(first + t) * args.log_sum_exp_ld]);
        out.delta[half] = args.delta[(first + t) * args.delta_ld];
      }
    }
    return out;
  }
  struct Pair {
    float v[2];
  };
  FUSELINE_DEVICE static Pair column_stats(u32 stats, int j) {
    u32 low, high;
    load_shared(low, high, stats + 4 * (8 * j + threadIdx.x % 4 * 2));
    return {{__uint_as_float(low), __uint_as_float(high)}};
  }

  FUSELINE_DEVICE void mask(Scores& s, int stay_row, int move_row, int row) const {
    const AttentionShape& shape = args.shape;
    if constexpr (!keys_stay) {
      if (needs_mask(shape, stay_row, 64, move_row, block_rows))
        mask_scores(s, shape, row, move_row);
    } else {
      if (move_row >= shape.first_query(stay_row + 63) &&
          move_row + block_rows <= shape.end_query(stay_row + 1))
        return;
      const int col = move_row + static_cast<int>(threadIdx.x % 4) * 2;
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const int key = row + 8 * half;
        const int begin = shape.first_query(key) - col, end = shape.end_query(key + 1) - col;
#pragma unroll
        for (int j = 0; j < block_rows / 8; ++j)
#pragma unroll
          for (int e = 0; e < 2; ++e)
            if (8 * j + e < begin || 8 * j + e >= end) s[4 * j + 2 * half + e] = minus_infinity;
      }
    }
  }

  FUSELINE_DEVICE void consume(int consumer) const {
    const int warp_row = static_cast<int>(threadIdx.x % 128 / 32) * 16;
    const int lane = static_cast<int>(threadIdx.x % 32);
    Place place;
    for (TilePlace slot;; slot.next()) {
      mbarrier_wait(tiles_full(slot.stage), slot.parity);
      const int index = item_in(slot.stage);
      if (index >= args.order.items()) return;
      const GradientWork w = work(index);
      Sum sum_1;
      Sum sum_2;
#pragma unroll
      for (int i = 0; i < d / 2; ++i) sum_1[i] = sum_2[i] = 0.0F;
      const u32 tiles = tiles_at(slot.stage);
      const int first_row = w.tile * tile_rows + consumer * 64;
      if (w.blocks() > 0) {
        const u32 rows = tiles + consumer * 64 * 128;
        const int own_row = first_row + warp_row + lane / 4;
        accumulate(sum_1, sum_2, place, rows, w, first_row, own_row);
      }

      const int row = first_row + warp_row;
      const u32 in_tile = static_cast<u32>(consumer * 64 + warp_row);
#pragma unroll
      for (float& x : sum_1) x *= args.shape.scale;
      store(args.out_1, args.out_1_ld, w, row, sum_1, tiles, in_tile);
      if constexpr (keys_stay) store(args.out_2, args.out_2_ld, w, row, sum_2, tiles, in_tile);
      fence_to_async_proxy();  // the next tiles come by the copy engine
      __syncwarp();
      release(tiles_empty(slot.stage));
    }
  }

  // One warp's 16 rows of a result.
  FUSELINE_DEVICE void store(Out* out, long long ld, const GradientWork& w, int row, const Sum& sum,
                             u32 tile, u32 in_tile) const {
    const int tokens = keys_stay ? args.shape.kv_tokens : args.shape.q_tokens;
    const long long stride = keys_stay ? args.shape.kv_rows : args.shape.q_tokens;
    Out* to = out + (w.batch * stride + row) * ld + w.stay_head * d;
    if constexpr (sizeof(Out) == 2) {
      write_rows<Out>(tile, stay_panel, in_tile, sum);
      __syncwarp();
      copy_rows<Out, d>(to, ld, tokens - row, tile, stay_panel, in_tile);
      __syncwarp();
    } else {
      const int lane = static_cast<int>(threadIdx.x % 32);
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        if (row + lane / 4 + 8 * half >= tokens) continue;
        Out* at = to + (lane / 4 + 8 * half) * ld + lane % 4 * 2;
#pragma unroll
        for (int j = 0; j < d / 8; ++j)
          *reinterpret_cast<float2*>(at + 8 * j) =
              make_float2(sum[4 * j + 2 * half], sum[4 * j + 2 * half + 1]);
      }
    }
  }

  // s becomes p = exp(scale · s - lse).
  FUSELINE_DEVICE void exponentials(Scores& s, const RowStats& rows, u32 stats, int first_row,
                                    int block, int row) const {
    const float scale_log2 = args.shape.scale * log2_of_e;
    mask(s, first_row, block * block_rows, row);
#pragma unroll
    for (int j = 0; j < block_rows / 8; ++j) {
      const Pair lse = keys_stay ? column_stats(stats, j) : Pair{};
#pragma unroll
      for (int i = 0; i < 4; ++i)
        s[4 * j + i] =
            power_of_2(s[4 * j + i] * scale_log2 - (keys_stay ? lse.v[i % 2] : rows.lse[i / 2]));
    }
  }
  // ds = p ∘ (dp - delta), rounded. With keys_stay p is rounded already, as sum_2 takes it.
  FUSELINE_DEVICE static void slopes(Rounded& ds, const Scores& s, const Rounded& p,
                                     const Scores& dp, const RowStats& rows, u32 stats) {
#pragma unroll
    for (int j = 0; j < block_rows / 8; ++j) {
      const Pair delta = keys_stay ? column_stats(stats + 4 * block_rows, j) : Pair{};
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const float* slope = dp + 4 * j + 2 * half;
        u32& word = ds[j / 2][j % 2 * 2 + half];
        if constexpr (keys_stay) {
          const FloatPair pair = unpack<Element>(p[j / 2][j % 2 * 2 + half]);
          word = pack<Element>(pair.low * (slope[0] - delta.v[0]),
                               pair.high * (slope[1] - delta.v[1]));
        } else {
          word = pack<Element>(s[4 * j + 2 * half] * (slope[0] - rows.delta[half]),
                               s[4 * j + 2 * half + 1] * (slope[1] - rows.delta[half]));
        }
      }
    }
  }

  // All blocks that pass one tile. `row`: of this thread. While sum_1 takes the block before, this
  // block's exponentials are computed; while sum_2 takes p, the slopes are. Unless it comes early, dp
  // is queued only after the exponentials.
  FUSELINE_DEVICE void accumulate(Sum& sum_1, Sum& sum_2, Place& place, u32 stay,
                                  const GradientWork& w, int first_row, int row) const {
    const RowStats rows = row_stats(w, row);
    const StayingTile<Element, d, (held > 0)> stay_1(stay, stay_panel);
    const StayingTile<Element, d, (held > 1)> stay_2(stay + tile_bytes, stay_panel);
    Scores s, dp;
    Rounded p, ds;
    const auto start_dp = [&](u32 stage) {
      wgmma_fence();
      stay_2.multiply(dp, stage_at(stage) + block_bytes, move_panel);
    };
    const auto start_products = [&](u32 stage) {
      mbarrier_wait(full(stage), place.parity);
      wgmma_fence();
      stay_1.multiply(s, stage_at(stage), move_panel);
      if constexpr (early) start_dp(stage);
    };
    // From p to ds.
    const auto finish_block = [&](u32 stage) {
      if constexpr (keys_stay) {
        if constexpr (!early) start_dp(stage);
        round(p, s);
        start_sum(sum_2, p, stage_at(stage) + block_bytes);
        if constexpr (!early) {
          wgmma_wait<1>();
          wgmma_pin(dp);
        }
      }
      slopes(ds, s, p, dp, rows, stats_at(stage));
      if constexpr (keys_stay) {
        pin(ds);
        compute_before_wait(__uint_as_float(ds[block_rows / 16 - 1][3]));
        wgmma_wait<0>();
        wgmma_pin(sum_2);
        pin(p);
      }
    };

    u32 before = place.stage;
    start_products(before);
    wgmma_wait<0>();
    wgmma_pin(s);
    if constexpr (early) wgmma_pin(dp);
    exponentials(s, rows, stats_at(before), first_row, w.first, row);
    finish_block(before);
    place.next();

    int block = w.first;
    for (int left = w.blocks() - 1; left > 0; --left) {
      if (++block == w.end) block = w.first;  // the next head
      const u32 stage = place.stage;
      start_products(stage);
      start_sum(sum_1, ds, stage_at(before));
      wgmma_wait<early ? 2 : 1>();
      wgmma_pin(s);
      exponentials(s, rows, stats_at(stage), first_row, block, row);
      wgmma_pin(s);
      compute_before_wait(s[block_rows / 2 - 1]);
      wgmma_wait<0>();
      if constexpr (early) wgmma_pin(dp);
      wgmma_pin(sum_1);
      pin(ds);
      release(empty(before));
      finish_block(stage);
      before = stage;
      place.next();
    }

    start_sum(sum_1, ds, stage_at(before));
    wgmma_wait<0>();
    wgmma_pin(sum_1);
    pin(ds);
    release(empty(before));
  }
};

// The body of a kernel with __launch_bounds__(384, 1), AttentionGradientSm90::shared_bytes of
// dynamic shared memory and at most one block per SM. keys_stay: dk and dv; else dq.
template <class Element, int d, bool keys_stay, class Out,
          GradientForm form = gradient_form<d, keys_stay>,
          int held = tiles_in_registers<d, keys_stay>>
FUSELINE_DEVICE void attention_gradient_sm90(const AttentionGradientArgs<Out>& args) {
  extern __shared__ __align__(1024) unsigned char shared[];
  AttentionGradientSm90<Element, d, keys_stay, Out, form, held>(args, shared_address(shared)).run();
}

}  // namespace fuseline::gpu
