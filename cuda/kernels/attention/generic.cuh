// Attention with mma.sync, forward and backward, for every GPU from sm_80 on and every head width
// that is a multiple of 16 up to 256: the plain version of forward_sm90.cuh and gradient_sm90.cuh,
// and what they are not written for.
//
// Four warps with 16 rows each stay with a tile of 64 rows; blocks of 64 (wide heads: 32) rows pass
// it through two buffers in shared memory, one being filled by cp.async while the other is used. A
// thread block has one tile; tiles with most work come first.
#pragma once

#include "gradient_work.cuh"
#include "mma_tiles.cuh"
#include "online_softmax.cuh"

namespace fuseline::gpu {

template <class Element>
struct AttentionOperands {
  const Element *q, *k, *v, *dy;  // first columns; dy: backward only
  long long q_ld, k_ld, v_ld, dy_ld;
};

// Blocks of 64 rows up to heads of `widest`: for heads of up to 128 all fits 99 KB, the least that
// a thread block may have from sm_80 on.
template <int d, int widest>
struct GenericTile {
  static_assert(d % 16 == 0 && d <= 256, "head width");
  static constexpr int threads = 128;
  static constexpr int rows = 64;
  static constexpr int block = d <= widest ? 64 : 32;
  static constexpr int tile_bytes = rows * row_pitch<d>;
  static constexpr int block_bytes = block * row_pitch<d>;
};
template <int d>
using GenericForwardTile = GenericTile<d, 128>;
template <int d, int dv = d>
using GenericGradientTile = GenericTile<(d > dv ? d : dv), 112>;

// 16 accumulator rows of a warp to memory; `count` of them exist.
template <int d, class Out>
FUSELINE_DEVICE void store_fragment(Out* to, long long ld, int count, const float (&x)[d / 2]) {
  const int lane = static_cast<int>(threadIdx.x % 32);
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const int r = lane / 4 + 8 * half;
    if (r >= count) continue;
    Out* at = to + r * ld + lane % 4 * 2;
#pragma unroll
    for (int j = 0; j < d / 8; ++j) {
      const float low = x[4 * j + 2 * half], high = x[4 * j + 2 * half + 1];
      if constexpr (sizeof(Out) == 2)
        *reinterpret_cast<u32*>(at + 8 * j) = pack<Out>(low, high);
      else
        *reinterpret_cast<float2*>(at + 8 * j) = make_float2(low, high);
    }
  }
}

// ---- forward: one thread block for each item of attention_order(shape, 64, d) ----

template <class Element>
struct GenericForwardArgs {
  AttentionOperands<Element> in;
  Element* y;
  long long y_ld;
  float* log_sum_exp;  // or null
  AttentionShape shape;
  AttentionOrder order;
  int log_sum_exp_ld = 1;  // numbers from one row's to the next
  ScoreBias<Element> bias{};
};

// Heads of v and y have dv columns.
template <class Element, int d, int dv = d>
constexpr int generic_forward_bytes = GenericForwardTile<d>::tile_bytes +
                                      2 * GenericForwardTile<d>::block*(row_pitch<d> +
                                                                        row_pitch<dv>);

template <class Element, int d, int dv = d, bool capped = false, bool biased = false>
FUSELINE_DEVICE void attention_forward_generic(const GenericForwardArgs<Element>& args) {
  using Tile = GenericForwardTile<d>;
  constexpr int stage_bytes = Tile::block * (row_pitch<d> + row_pitch<dv>);
  extern __shared__ __align__(16) unsigned char shared_16[];
  const u32 queries = shared_address(shared_16);
  const u32 buffers = queries + Tile::tile_bytes;
  const AttentionShape& s = args.shape;
  const int thread = static_cast<int>(threadIdx.x), lane = thread % 32;
  const AttentionItem item = args.order.item(static_cast<int>(blockIdx.x), s);
  const int tile_row = item.tile * Tile::rows;
  const int warp_row = tile_row + thread / 32 * 16;
  const long long first_q = static_cast<long long>(item.batch) * s.q_tokens;
  const long long first_k = static_cast<long long>(item.batch) * s.kv_rows;
  const int kv_head = item.head / s.shared_by();
  const HeadRows<Element> q{args.in.q + first_q * args.in.q_ld + item.head * d, args.in.q_ld};
  const HeadRows<Element> k{args.in.k + first_k * args.in.k_ld + kv_head * d, args.in.k_ld};
  const HeadRows<Element> v{args.in.v + first_k * args.in.v_ld + kv_head * dv, args.in.v_ld};
  const BlockRange range = key_blocks(s, tile_row, Tile::rows, Tile::block);
  const auto fetch = [&](int block) {
    const u32 to = buffers + (block & 1) * stage_bytes;
    fetch_rows<d, Tile::block, Tile::threads>(to, k, block * Tile::block, s.kv_tokens, thread);
    fetch_rows<dv, Tile::block, Tile::threads>(to + Tile::block_bytes, v, block * Tile::block,
                                               s.kv_tokens, thread);
    cp_async_commit();
  };
  fetch_rows<d, Tile::rows, Tile::threads>(queries, q, tile_row, s.q_tokens, thread);
  if (range.count() > 0) fetch(range.first);

  float o[dv / 2];
#pragma unroll
  for (float& x : o) x = 0.0F;
  OnlineSoftmax softmax;
  for (int block = range.first; block < range.end; ++block) {
    cp_async_wait<0>();
    __syncthreads();  // the block has come, and everyone is done with the one before
    if (block + 1 < range.end) fetch(block + 1);
    const u32 from = buffers + (block & 1) * stage_bytes;
    float x[Tile::block / 2];
    BiasOfBlock<Tile::block / 2, Element> bias;
    if constexpr (biased)
      bias.load(args.bias, s, item.head, warp_row + lane / 4, block * Tile::block);
    multiply_rows<Element, d, Tile::block>(x, queries + thread / 32 * 16 * row_pitch<d>, from);
    if constexpr (capped) cap_scores(x, s);
    if constexpr (biased) bias.add_to(x, s);
    if (needs_mask(s, warp_row, 16, block * Tile::block, Tile::block))
      mask_scores(x, s, warp_row + lane / 4, block * Tile::block);
    float keep[2];
    softmax.step(x, s.scale * log2_of_e, keep);
    scale_rows(o, keep);
    accumulate_rows<Element, dv, Tile::block>(o, x, from + Tile::block_bytes);
  }
  softmax.finish();
  const float inverse[2] = {softmax.inverse(0), softmax.inverse(1)};
  scale_rows(o, inverse);
  store_fragment<dv>(args.y + (first_q + warp_row) * args.y_ld + item.head * dv, args.y_ld,
                     s.q_tokens - warp_row, o);
  if (args.log_sum_exp != nullptr && lane % 4 == 0) {
    const long long first = (static_cast<long long>(item.batch) * s.heads + item.head) * s.q_tokens;
#pragma unroll
    for (int half = 0; half < 2; ++half)
      if (const int t = warp_row + lane / 4 + 8 * half; t < s.q_tokens)
        args.log_sum_exp[(first + t) * args.log_sum_exp_ld] = softmax.log_sum_exp(half, s.scale);
  }
}

// ---- backward: one result a launch, so that its sum is all that stays in registers ----

enum class AttentionGradientOf { q, k, v };

// One thread block for each item of attention_gradient_order(shape, 64, d, of != q, ...).
template <class Element, class Out>
struct GenericGradientArgs {
  AttentionOperands<Element> in;
  const float *log_sum_exp, *delta;  // [B·H·T]
  Out* out;                          // dq, dk or dv: row b·rows + r, columns head·d onward
  long long out_ld;
  AttentionShape shape;
  AttentionOrder order;
  int per_query_head;                    // dk, dv: not summed over the heads that share a key
  int log_sum_exp_ld = 1, delta_ld = 1;  // numbers from one row's to the next
  ScoreBias<Element> bias{};
};

// Of a tile that stays and two blocks that pass, each of q or k and of dy or v.
template <class Element, int d, int dv = d>
constexpr int generic_gradient_bytes = (GenericGradientTile<d, dv>::rows +
                                        2 * GenericGradientTile<d, dv>::block) *
                                       (row_pitch<d> + row_pitch<dv>);

// p and ds of one warp's 16 rows and a block: rows are queries (of == q) or keys. Heads of v and dy
// have dv columns.
template <class Element, int d, AttentionGradientOf of, int dv = d, bool capped = false,
          bool biased = false, class Out>
FUSELINE_DEVICE void attention_gradient_generic(const GenericGradientArgs<Element, Out>& args) {
  using Tile = GenericGradientTile<d, dv>;
  constexpr int tile_bytes = Tile::rows * row_pitch<d>;
  constexpr int block_bytes = Tile::block * row_pitch<d>;
  constexpr int stage_bytes = block_bytes + Tile::block * row_pitch<dv>;
  constexpr int cols = of == AttentionGradientOf::v ? dv : d;  // of the result's heads
  constexpr bool keys_stay = of != AttentionGradientOf::q;
  extern __shared__ __align__(16) unsigned char shared_16[];
  const u32 stay = shared_address(shared_16);
  const u32 buffers = stay + tile_bytes + Tile::rows * row_pitch<dv>;
  const AttentionShape& s = args.shape;
  const int thread = static_cast<int>(threadIdx.x), lane = thread % 32;
  const GradientWork w = gradient_work<keys_stay>(
      s, args.order, args.per_query_head, static_cast<int>(blockIdx.x), Tile::rows, Tile::block);
  const int kv_head = w.first_head / s.shared_by();
  const int tile_row = w.tile * Tile::rows;
  const int warp_row = tile_row + thread / 32 * 16;
  const long long first_q = static_cast<long long>(w.batch) * s.q_tokens;
  const long long first_k = static_cast<long long>(w.batch) * s.kv_rows;

  const auto queries = [&](int head) {
    return HeadRows<Element>{args.in.q + first_q * args.in.q_ld + head * d, args.in.q_ld};
  };
  const auto results = [&](int head) {
    return HeadRows<Element>{args.in.dy + first_q * args.in.dy_ld + head * dv, args.in.dy_ld};
  };
  const HeadRows<Element> k{args.in.k + first_k * args.in.k_ld + kv_head * d, args.in.k_ld};
  const HeadRows<Element> v{args.in.v + first_k * args.in.v_ld + kv_head * dv, args.in.v_ld};
  const HeadRows<Element> q = queries(w.first_head), dy = results(w.first_head);
  const int stay_rows = keys_stay ? s.kv_tokens : s.q_tokens;
  fetch_rows<d, Tile::rows, Tile::threads>(stay, keys_stay ? k : q, tile_row, stay_rows, thread);
  fetch_rows<dv, Tile::rows, Tile::threads>(stay + tile_bytes, keys_stay ? v : dy, tile_row,
                                            stay_rows, thread);

  const int blocks = max_of(0, w.end - w.first);  // of each query head
  const auto fetch = [&](int index) {
    const int head = w.first_head + index / blocks;
    const int row = (w.first + index % blocks) * Tile::block;
    const u32 to = buffers + (index & 1) * stage_bytes;
    const int rows = keys_stay ? s.q_tokens : s.kv_tokens;
    fetch_rows<d, Tile::block, Tile::threads>(to, keys_stay ? queries(head) : k, row, rows, thread);
    fetch_rows<dv, Tile::block, Tile::threads>(to + block_bytes, keys_stay ? results(head) : v, row,
                                               rows, thread);
    cp_async_commit();
  };
  if (blocks > 0) fetch(0);

  float sum[cols / 2];
#pragma unroll
  for (float& x : sum) x = 0.0F;
  const float scale_log2 = s.scale * log2_of_e;
  const u32 my_rows = stay + thread / 32 * 16 * row_pitch<d>;
  const u32 my_others = stay + tile_bytes + thread / 32 * 16 * row_pitch<dv>;
  for (int index = 0; index < w.blocks(); ++index) {
    cp_async_wait<0>();
    __syncthreads();
    if (index + 1 < w.blocks()) fetch(index + 1);
    const u32 move = buffers + (index & 1) * stage_bytes;
    const int row = (w.first + index % blocks) * Tile::block;
    const int head = w.first_head + index / blocks;
    const long long stats = (static_cast<long long>(w.batch) * s.heads + head) * s.q_tokens;

    float p[Tile::block / 2];
    multiply_rows<Element, d, Tile::block>(p, my_rows, move);
    float dp[Tile::block / 2];
    if constexpr (of != AttentionGradientOf::v)
      multiply_rows<Element, dv, Tile::block>(dp, my_others, move + block_bytes);
#pragma unroll
    for (int i = 0; i < Tile::block / 2; ++i) {
      const int mine = warp_row + lane / 4 + 8 * (i / 2 % 2);
      const int other = row + i / 4 * 8 + lane % 4 * 2 + i % 2;
      const int t = keys_stay ? other : mine, key = keys_stay ? mine : other;
      const bool seen = t < s.q_tokens && key < s.end_key(t) && key >= s.first_key(t);
      const float lse =
          seen ? args.log_sum_exp[(stats + t) * args.log_sum_exp_ld] * log2_of_e : 0.0F;
      float slope = 1.0F;  // of the cap: z = c tanh(s / c) grows by 1 - (z / c)^2
      if constexpr (capped) {
        const float part = tanh_of(p[i] * (s.scale / s.softcap));
        slope = 1.0F - part * part;
        p[i] = part * (s.softcap / s.scale);
      }
      if constexpr (biased) p[i] += args.bias.unscaled(s, head, t, key);
      p[i] = seen ? power_of_2(p[i] * scale_log2 - lse) : 0.0F;
      if constexpr (of != AttentionGradientOf::v)
        p[i] *= slope * (dp[i] - (seen ? args.delta[(stats + t) * args.delta_ld] : 0.0F));
    }
    // dq and dk: ds times what made s; dv: p times what made dp.
    accumulate_rows<Element, cols, Tile::block>(
        sum, p, move + (of == AttentionGradientOf::v ? block_bytes : 0));
  }
  if constexpr (of != AttentionGradientOf::v) {
    // By index: the compiler does not unroll a loop over 128 references, and an array that is indexed
    // at run time lies in memory.
#pragma unroll
    for (int i = 0; i < cols / 2; ++i) sum[i] *= s.scale;
  }
  const long long first_row = keys_stay ? first_k : first_q;
  store_fragment<cols>(args.out + (first_row + warp_row) * args.out_ld + w.stay_head * cols,
                       args.out_ld, stay_rows - warp_row, sum);
}

}  // namespace fuseline::gpu
