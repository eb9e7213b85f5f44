// Attention's forward pass on Hopper: y = softmax(scale · q k^T + mask) v, without ever storing the
// scores.
//
// One persistent thread block per SM. Warpgroup 0 is the producer: one thread asks the copy engine
// for a tile of 128 queries, then for blocks of 128 keys and of 128 values (80 of wide heads) through
// a ring in shared memory. Warpgroups 1 and 2 are consumers with 64 queries each. Per block of keys:
//
//   scores = q k^T            wgmma, both from shared memory
//   online softmax            registers: a row lies in 4 lanes
//   y = y · keep + p v        wgmma, p from registers
//
// The special-function unit needs half as long for the exponentials as the tensor cores for both
// products, so the two must overlap. Within a warpgroup the next block's scores are multiplied
// together with this block's p v, and softmax of the next block starts as soon as its scores are
// there. Between warpgroups the hardware overlaps by itself; making them take turns by barriers
// (ping-pong) was measured and gained nothing.
//
//   ring:       k0 k1 v0 k2 v1 k3 v2 ... v(n-1) | k0 of the next tile ...
//   consumer:   s0 | s1 y0 | s2 y1 | ... | y(n-1)
#pragma once

#include "../ptx/sync.cuh"
#include "../ptx/tma.cuh"
#include "../sm90/ring_order.cuh"
#include "online_softmax.cuh"
#include "tickets.cuh"
#include "tile_rows.cuh"
#include "wgmma_registers.cuh"

namespace fuseline::gpu {

// The tensor maps' boxes are AttentionSm90::tile_rows (q) and ::block_keys (k, v) rows of 64
// columns, 128-byte swizzle; the maps begin at the operand's first column and have all its rows.
// The last block of keys of a sequence reads rows past it (the next sequence's, or a cache's unused
// ones). They get probability 0, but must hold finite numbers. A bias of scores is a matrix
// [H·T, S] of the same boxes: the producer brings a tile of it behind every block of keys.
template <class Element>
struct AttentionForwardArgs {
  TmaMap q, k, v;
  TmaMap bias;  // not looked at where nothing is added
  Element* y;
  long long y_ld;
  float* log_sum_exp;  // or null
  AttentionShape shape;
  AttentionOrder order;  // attention_order(shape, tile_rows, d)
  Tickets tickets;
  int log_sum_exp_ld = 1;  // numbers from one row's to the next
};

// `capped`: the shape has a softcap. `biased`: scores have a bias.
template <class Element, int d, int dv = d, bool capped = false, bool biased = false>
struct AttentionSm90 {
  static_assert(wgmma_head<d> && wgmma_head<dv> && dv <= d, "other head widths: generic.cuh");
  static_assert(!biased || d <= 128, "a tile of the bias fills whole stages");
  using Args = AttentionForwardArgs<Element>;
  static constexpr int threads = 384;
  static constexpr int tile_rows = 128, block_keys = hopper_block_keys(d, dv);

  // Shared memory: tiles of queries (y leaves through them) | ring | barriers. Heads of more than
  // 128 columns leave room for one tile of queries and three to five stages.
  static constexpr int query_panel = tile_rows * 128, block_panel = block_keys * 128;
  static constexpr int panels = head_panels<d>, value_panels = head_panels<dv>;
  static constexpr int tile_bytes = panels * query_panel, stage_bytes = panels * block_panel;
  static constexpr int slots = panels > 2 ? 1 : 2;
  static constexpr int stages = panels == 1   ? 8
                                : panels == 2 ? 5
                                : panels == 4 ? 4
                                              : (block_keys == 128 ? 3 : 5);
  static constexpr int shared_bytes = slots * tile_bytes + stages * stage_bytes + 256;
  // A tile of the bias has the 2 panels of 128 keys.
  static constexpr int bias_stages = biased ? 2 / panels : 0;
  // A producer that keeps columns of keys and of values apart, or a bias, needs more.
  static constexpr int producer_registers = d == dv && !biased ? 24 : 40;
  static constexpr int consumer_registers = d == dv && !biased ? 240 : 232;
  using Place = RingPlace<stages>;
  using QueryPlace = RingPlace<slots>;

  const Args& args;
  u32 base;
  int group;  // warpgroup

  FUSELINE_DEVICE AttentionSm90(const Args& a, u32 shared)
      : args(a),
        base(shared),
        group(__shfl_sync(0xffffffffU, static_cast<int>(threadIdx.x / 128), 0)) {}

  FUSELINE_DEVICE u32 queries_at(u32 slot) const { return base + slot * tile_bytes; }
  FUSELINE_DEVICE u32 stage_at(u32 stage) const {
    return base + slots * tile_bytes + stage * stage_bytes;
  }
  FUSELINE_DEVICE u32 full(u32 stage) const { return stage_at(stages) + 8 * stage; }
  FUSELINE_DEVICE u32 empty(u32 stage) const { return full(stage) + 8 * stages; }
  FUSELINE_DEVICE u32 queries_full(u32 slot) const { return full(2 * stages + slot); }
  FUSELINE_DEVICE u32 queries_empty(u32 slot) const { return full(2 * stages + slots + slot); }
  FUSELINE_DEVICE u32 item_at(u32 slot) const { return full(2 * stages + 2 * slots) + 4 * slot; }

  FUSELINE_DEVICE void run() {
    if (threadIdx.x == 0) {
      for (int s = 0; s < stages; ++s) {
        mbarrier_init(full(s), 1);
        mbarrier_init(empty(s), 8);  // the consumers' warps
      }
      for (int s = 0; s < slots; ++s) {
        mbarrier_init(queries_full(s), 1);
        mbarrier_init(queries_empty(s), 8);
      }
      mbarrier_init_fence();
    }
    __syncthreads();
    if (group == 0) {
      keep_registers<producer_registers>();
      if (threadIdx.x == 0) produce();
    } else {
      take_registers<consumer_registers>();
      consume(group - 1);
    }
  }

  FUSELINE_DEVICE BlockRange blocks_of(const AttentionItem& item) const {
    return key_blocks(args.shape, item.tile * tile_rows, tile_rows, block_keys);
  }

  // ---- producer ----

  FUSELINE_DEVICE void produce() const {
    Place place;
    for (QueryPlace query;; query.next()) {
      mbarrier_wait(queries_empty(query.stage), query.parity ^ 1);
      const int index = draw_ticket(args.tickets, args.order.items());
      store_shared(item_at(query.stage), static_cast<u32>(index));
      if (index >= args.order.items()) {
        mbarrier_arrive(queries_full(query.stage));
        return;
      }
      const AttentionItem item = args.order.item(index, args.shape);
      const BlockRange range = blocks_of(item);
      send<panels>(queries_at(query.stage), query_panel, queries_full(query.stage), args.q, item.head * d,
                   item.batch * args.shape.q_tokens + item.tile * tile_rows);
      const int kv_head = item.head / args.shape.shared_by();
      const int row = item.batch * args.shape.kv_rows;
      for (int block = range.end - 1; block >= range.first; --block) {
        enqueue<panels>(place, args.k, kv_head * d, row + block * block_keys);
#pragma unroll
        for (int i = 0; i < bias_stages; ++i)
          enqueue<panels>(place, args.bias, block * block_keys + 64 * panels * i,
                          item.head * args.shape.q_tokens + item.tile * tile_rows);
        if (block + 1 < range.end)
          enqueue<value_panels>(place, args.v, kv_head * dv, row + (block + 1) * block_keys);
      }
      if (range.count() > 0)
        enqueue<value_panels>(place, args.v, kv_head * dv, row + range.first * block_keys);
    }
  }
  template <int count>
  FUSELINE_DEVICE void enqueue(Place& place, const TmaMap& map, int col, int row) const {
    mbarrier_wait(empty(place.stage), place.parity ^ 1);
    send<count>(stage_at(place.stage), block_panel, full(place.stage), map, col, row);
    place.next();
  }
  template <int count>  // panels
  FUSELINE_DEVICE void send(u32 to, int panel, u32 barrier, const TmaMap& map, int col,
                            int row) const {
    mbarrier_arrive_expect(barrier, count * panel);
#pragma unroll
    for (int p = 0; p < count; ++p) tma_load(to + p * panel, map, col + 64 * p, row, barrier);
  }

  // ---- consumers ----

  using Scores = float[block_keys / 2];
  using Output = float[dv / 2];
  using Probabilities = u32[block_keys / 16][4];

  FUSELINE_DEVICE static void release(u32 barrier) {
    if (threadIdx.x % 32 == 0) mbarrier_arrive(barrier);
  }
  FUSELINE_DEVICE static void start_scores(Scores& s, u32 q, u32 k) {
    wgmma_fence();
#pragma unroll
    for (int i = 0; i < d / 16; ++i)
      Wgmma<Element, block_keys, 0, 0>::run(s, wgmma_tile(q + i / 4 * query_panel + i % 4 * 32, 0),
                                            wgmma_tile(k + i / 4 * block_panel + i % 4 * 32, 0),
                                            i > 0);
    wgmma_commit();
  }
  FUSELINE_DEVICE static void start_output(Output& o, const Probabilities& p, u32 v) {
    wgmma_fence();
#pragma unroll
    for (int i = 0; i < block_keys / 16; ++i)
      WgmmaRegisters<Element, dv, 1>::run(o, p[i], wgmma_tile(v + i * 16 * 128, block_panel), 1);
    wgmma_commit();
  }
  FUSELINE_DEVICE static void round_scores(Probabilities& p, const Scores& s) {
#pragma unroll
    for (int i = 0; i < block_keys / 16; ++i)
#pragma unroll
      for (int w = 0; w < 4; ++w) p[i][w] = pack<Element>(s[8 * i + 2 * w], s[8 * i + 2 * w + 1]);
  }
  // Until here the products have read them.
  FUSELINE_DEVICE static void pin(Probabilities& p) {
#pragma unroll
    for (int i = 0; i < block_keys / 16; ++i)
#pragma unroll
      for (int w = 0; w < 4; ++w) asm volatile("" : "+r"(p[i][w])::"memory");
  }

  // The bias of a block, which comes behind its keys, to this warp's scores, unscaled: what follows
  // scales them. Four 8 × 8 matrices at a time lie as the accumulators do.
  FUSELINE_DEVICE void add_bias(Scores& s, const Place& behind_keys, int consumer) const {
    const float unscaled = 1.0F / args.shape.scale;
    const u32 lane = threadIdx.x % 32;
    const u32 row = static_cast<u32>(consumer * 64) + threadIdx.x % 128 / 32 * 16 + lane % 16;
    Place place = behind_keys;
#pragma unroll
    for (int stage = 0; stage < bias_stages; ++stage) {
      mbarrier_wait(full(place.stage), place.parity);
#pragma unroll
      for (int i = 0; i < 4 * panels; ++i) {
        u32 words[4];
        ldmatrix_x4(words, panel_address(stage_at(place.stage), block_panel, row,
                                         static_cast<u32>(2 * i) + lane / 16));
#pragma unroll
        for (int w = 0; w < 4; ++w) {
          const FloatPair pair = unpack<Element>(words[w]);
          float* two = s + 8 * (4 * panels * stage + i) + 2 * w;
          two[0] += pair.low * unscaled;
          two[1] += pair.high * unscaled;
        }
      }
      __syncwarp();
      release(empty(place.stage));
      place.next();
    }
  }

  FUSELINE_DEVICE void consume(int consumer) const {
    const int warp_row = static_cast<int>(threadIdx.x % 128 / 32) * 16;
    const int lane = static_cast<int>(threadIdx.x % 32);
    Place place;
    for (QueryPlace query;; query.next()) {
      mbarrier_wait(queries_full(query.stage), query.parity);
      const int index = static_cast<int>(
          __shfl_sync(0xffffffffU, lane == 0 ? load_shared(item_at(query.stage)) : 0U, 0));
      if (index >= args.order.items()) break;
      const AttentionItem item = args.order.item(index, args.shape);
      const BlockRange range = blocks_of(item);
      Output o;
#pragma unroll
      for (float& x : o) x = 0.0F;
      OnlineSoftmax softmax;
      const u32 tile = queries_at(query.stage);
      const int first_row = item.tile * tile_rows + consumer * 64;  // of this warpgroup
      if (range.count() > 0)
        attend(o, softmax, place, tile + consumer * 64 * 128, range, first_row,
               first_row + warp_row + lane / 4, consumer);
      softmax.finish();
      const float inverse[2] = {softmax.inverse(0), softmax.inverse(1)};
      scale_rows(o, inverse);

      const int row = first_row + warp_row;
      const int rows = args.shape.q_tokens - row;
      const u32 row_in_tile = static_cast<u32>(consumer * 64 + warp_row);
      write_rows<Element>(tile, query_panel, row_in_tile, o);
      __syncwarp();
      const long long out_row = static_cast<long long>(item.batch) * args.shape.q_tokens + row;
      copy_rows<Element, dv>(args.y + out_row * args.y_ld + item.head * dv, args.y_ld, rows, tile,
                             query_panel, row_in_tile);
      if (args.log_sum_exp != nullptr && lane % 4 == 0) {
        float* sums = args.log_sum_exp;
        const long long first =
            (static_cast<long long>(item.batch) * args.shape.heads + item.head) *
            args.shape.q_tokens;
#pragma unroll
        for (int half = 0; half < 2; ++half)
          if (const int t = row + lane / 4 + 8 * half; lane / 4 + 8 * half < rows)
            sums[(first + t) * args.log_sum_exp_ld] = softmax.log_sum_exp(half, args.shape.scale);
      }
      fence_to_async_proxy();  // the next tile of queries comes by the copy engine
      __syncwarp();
      release(queries_empty(query.stage));
    }
  }

  FUSELINE_DEVICE static void skip_bias(Place& place) {
#pragma unroll
    for (int i = 0; i < bias_stages; ++i) place.next();
  }

  // All key blocks of one tile of queries, from the last to the first. `row`: of this thread.
  FUSELINE_DEVICE void attend(Output& o, OnlineSoftmax& softmax, Place& place, u32 q,
                              const BlockRange& range, int first_row, int row, int consumer) const {
    const float scale_log2 = args.shape.scale * log2_of_e;
    Scores s;
    Probabilities p;
    float keep[2];
    const auto soften = [&](int block, const Place& behind_keys) {
      if constexpr (capped) cap_scores(s, args.shape);
      if constexpr (biased) add_bias(s, behind_keys, consumer);
      if (needs_mask(args.shape, first_row, 64, block * block_keys, block_keys))
        mask_scores(s, args.shape, row, block * block_keys);
      softmax.step(s, scale_log2, keep);
    };

    mbarrier_wait(full(place.stage), place.parity);
    start_scores(s, q, stage_at(place.stage));
    wgmma_wait<0>();
    wgmma_pin(s);
    release(empty(place.stage));
    place.next();
    const Place first_bias = place;
    skip_bias(place);
    soften(range.end - 1, first_bias);
    round_scores(p, s);

    for (int block = range.end - 2; block >= range.first; --block) {
      const Place k = place;
      place.next();
      const Place bias = place;
      skip_bias(place);
      const Place v = place;
      place.next();
      mbarrier_wait(full(k.stage), k.parity);
      start_scores(s, q, stage_at(k.stage));
      mbarrier_wait(full(v.stage), v.parity);
      start_output(o, p, stage_at(v.stage));
      wgmma_wait<1>();
      wgmma_pin(s);
      release(empty(k.stage));
      soften(block, bias);
      wgmma_pin(s);
      compute_before_wait(softmax.l[0] + softmax.l[1]);
      wgmma_wait<0>();
      wgmma_pin(o);
      pin(p);
      release(empty(v.stage));
      scale_rows(o, keep);
      round_scores(p, s);
    }

    mbarrier_wait(full(place.stage), place.parity);
    start_output(o, p, stage_at(place.stage));
    wgmma_wait<0>();
    wgmma_pin(o);
    pin(p);
    release(empty(place.stage));
    place.next();
  }
};

// The body of a kernel with __launch_bounds__(384, 1), AttentionSm90::shared_bytes of dynamic
// shared memory and at most one block per SM.
template <class Element, int d, int dv = d, bool capped = false, bool biased = false>
FUSELINE_DEVICE void attention_forward_sm90(const AttentionForwardArgs<Element>& args) {
  extern __shared__ __align__(1024) unsigned char shared[];
  AttentionSm90<Element, d, dv, capped, biased>(args, shared_address(shared)).run();
}

}  // namespace fuseline::gpu
