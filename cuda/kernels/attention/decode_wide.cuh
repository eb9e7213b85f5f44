// Attention of heads that are too wide for the other kernels, and whose values are columns of their
// keys: latent attention, where all query heads share one key of 576 columns, and its last 512
// columns are the value. sm_80 on, any number of new tokens.
//
//   * queries that share the key head form tiles of 16 or 64 rows for the tensor cores: T tokens of
//     all heads;
//   * the keys are split over `splits` thread blocks, and come 32 at a time through a ring in
//   shared
//     memory; a key is loaded once for its scores and for its value;
//   * the result's columns do not fit one warp's registers, so `parts` warps share 16 rows: of a
//     block of keys each multiplies the scores of some keys, all exchange maxima and probabilities
//     through shared memory, and each adds to its part of the result's columns.
//
// With several splits a second launch joins their results, row by row.
#pragma once

#include "decode_work.cuh"
#include "mma_tiles.cuh"
#include "online_softmax.cuh"

namespace fuseline::gpu {

template <class Element>
struct AttentionWideArgs {
  const Element *q, *k;  // first columns
  long long q_ld, k_ld, y_ld;
  Element* y;
  float* log_sum_exp;  // or null
  AttentionShape shape;
  int splits;
  float* partial;  // decode_partial_floats() numbers, used when splits > 1
  int log_sum_exp_ld = 1;
};

// `first`: the key's column where its value begins.
template <class Element, int d, int dv, int first, int rows, int stages, bool capped = false>
struct AttentionWide {
  static_assert(d % 32 == 0 && dv % 64 == 0 && first % 8 == 0 && first + dv <= d, "head width");
  using Args = AttentionWideArgs<Element>;
  static constexpr int strips = rows / 16, parts = rows == 64 ? 2 : 4;
  static constexpr int threads = 32 * strips * parts;
  static constexpr int keys = 32;                 // of a stage
  static constexpr int part_keys = keys / parts;  // whose scores a warp multiplies
  static constexpr int part_cols = dv / parts;    // of the result
  static constexpr int tile_bytes = rows * row_pitch<d>;
  static constexpr int stage_bytes = keys * row_pitch<d>;
  static constexpr int probability_bytes = rows * row_pitch<keys>;
  static constexpr int shared_bytes =
      tile_bytes + stages * stage_bytes + probability_bytes + 4 * parts * rows;
  static constexpr int pitch = dv + 4;  // of a partial result: sums, maximum, sum of exponentials
  static constexpr int tile_rows = rows, value_cols = dv;

  const Args& args;
  u32 queries;  // shared memory: queries | stages | probabilities | numbers of rows
  int tile, split, batch, kv_head, row_tile;
  int lane, strip, part;

  // Split `index` of all tiles'.
  FUSELINE_DEVICE AttentionWide(const Args& a, u32 shared, int index)
      : args(a),
        queries(shared),
        tile(index / a.splits),
        split(index % a.splits),
        lane(static_cast<int>(threadIdx.x % 32)),
        strip(static_cast<int>(threadIdx.x / 32) / parts),
        part(static_cast<int>(threadIdx.x / 32) % parts) {
    const int row_tiles = decode_row_tiles(args.shape, rows);
    row_tile = tile % row_tiles;
    kv_head = tile / row_tiles % args.shape.kv_heads;
    batch = tile / row_tiles / args.shape.kv_heads;
  }

  FUSELINE_DEVICE u32 stage_at(int stage) const {
    return queries + tile_bytes + stage * stage_bytes;
  }
  FUSELINE_DEVICE u32 probabilities() const { return stage_at(stages); }
  // A number of a row of the tile, for every part.
  FUSELINE_DEVICE u32 number_at(int of_part, int row) const {
    return probabilities() + probability_bytes + 4 * (of_part * rows + row);
  }

  // Row r of all rows that share the key head is query `token` of head `head`.
  FUSELINE_DEVICE int row(int r) const { return row_tile * rows + r; }
  FUSELINE_DEVICE int all_rows() const { return args.shape.q_tokens * args.shape.shared_by(); }
  FUSELINE_DEVICE int token(int r) const { return row(r) % args.shape.q_tokens; }
  FUSELINE_DEVICE int head(int r) const {
    return kv_head * args.shape.shared_by() + row(r) / args.shape.q_tokens;
  }
  FUSELINE_DEVICE long long result_row(int r) const {
    return static_cast<long long>(batch) * args.shape.q_tokens + token(r);
  }

  FUSELINE_DEVICE void fetch_queries() const {
    constexpr int chunks = d / 8;
#pragma unroll 4
    for (int i = static_cast<int>(threadIdx.x); i < rows * chunks; i += threads) {
      const int r = i / chunks, chunk = i % chunks;
      const bool exists = row(r) < all_rows();
      const int from = exists ? r : 0;
      cp_async_16(queries + r * row_pitch<d> + 16 * chunk,
                  args.q + result_row(from) * args.q_ld + head(from) * d + 8 * chunk,
                  exists ? 16 : 0);
    }
  }

  FUSELINE_DEVICE void run() const {
    const AttentionShape& s = args.shape;
    const HeadRows<Element> k{
        args.k + static_cast<long long>(batch) * s.kv_rows * args.k_ld + kv_head * d, args.k_ld};
    const int begin = s.first_key(0) / keys;
    const int blocks = max_of(0, ceil_div(s.end_key(s.q_tokens - 1), keys) - begin);
    const int end =
        begin + static_cast<int>(static_cast<long long>(blocks) * (split + 1) / args.splits);
    int block = begin + static_cast<int>(static_cast<long long>(blocks) * split / args.splits);
    const auto fetch = [&](int which, int stage) {
      if (which < end)
        fetch_rows<d, keys, threads>(stage_at(stage), k, which * keys, s.kv_tokens,
                                     static_cast<int>(threadIdx.x));
      cp_async_commit();
    };
    fetch_queries();
#pragma unroll
    for (int i = 0; i < stages - 1; ++i) fetch(block + i, i);

    float o[part_cols / 2];
#pragma unroll
    for (float& x : o) x = 0.0F;
    float m[2] = {minus_infinity, minus_infinity}, l[2] = {0.0F, 0.0F};
    int stage = 0;
    for (; block < end; ++block) {
      cp_async_wait<stages - 2>();
      __syncthreads();  // the keys have come, and everyone is done with the ones before
      fetch(block + stages - 1, stage == 0 ? stages - 1 : stage - 1);
      float keep[2];
      soften(block, stage_at(stage), m, l, keep);
      scale_rows(o, keep);
      add_values(o, stage_at(stage));
      stage = stage + 1 == stages ? 0 : stage + 1;
    }
    cp_async_wait<0>();
    sum_parts(l);
    leave(o, m, l);
  }

  // ---- one block of keys ----

  // This warp's 16 rows times its part of the keys.
  FUSELINE_DEVICE void multiply_part(float (&x)[part_keys / 2], u32 from) const {
    float even[part_keys / 2], odd[part_keys / 2];  // independent sums
#pragma unroll
    for (int i = 0; i < part_keys / 2; ++i) even[i] = odd[i] = 0.0F;
    const u32 a_tile = queries + strip * 16 * row_pitch<d>;
    const u32 b = from + (part * part_keys + lane % 8) * row_pitch<d> + lane / 8 * 16;
#pragma unroll 2
    for (int i = 0; i < d / 32; ++i) {
      u32 a0[4], a1[4];
      load_a<d>(a0, a_tile, 2 * i);
      load_a<d>(a1, a_tile, 2 * i + 1);
#pragma unroll
      for (int g = 0; g < part_keys / 8; ++g) {
        u32 words[4];  // 8 keys, 32 columns
        ldmatrix_x4(words, b + g * 8 * row_pitch<d> + 64 * i);
        mma_16x8x16<Element>(reinterpret_cast<float(&)[4]>(even[4 * g]), a0, words[0], words[1]);
        mma_16x8x16<Element>(reinterpret_cast<float(&)[4]>(odd[4 * g]), a1, words[2], words[3]);
      }
    }
#pragma unroll
    for (int i = 0; i < part_keys / 2; ++i) x[i] = even[i] + odd[i];
  }

  // Probabilities of all parts go to shared memory, rounded. l: of this part's keys only.
  FUSELINE_DEVICE void soften(int block, u32 from, float (&m)[2], float (&l)[2],
                              float (&keep)[2]) const {
    const AttentionShape& s = args.shape;
    const float scale_log2 = s.scale * log2_of_e;
    float x[part_keys / 2];
    multiply_part(x, from);
    if constexpr (capped) cap_scores(x, s);
    const int r[2] = {strip * 16 + lane / 4, strip * 16 + lane / 4 + 8};
    const int t[2] = {token(r[0]), token(r[1])};
    float top[2] = {minus_infinity, minus_infinity};
#pragma unroll
    for (int i = 0; i < part_keys / 2; ++i) {
      const int key = block * keys + part * part_keys + i / 4 * 8 + lane % 4 * 2 + i % 2;
      const int row_token = t[i / 2 % 2];
      if (key >= s.end_key(row_token) || key < s.first_key(row_token)) x[i] = minus_infinity;
      top[i / 2 % 2] = fmaxf(top[i / 2 % 2], x[i]);
    }
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const float most = quad_max(top[half]);
      if (lane % 4 == 0) store_shared(number_at(part, r[half]), most);
    }
    __syncthreads();
    float shift[2];
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      float most = m[half];
#pragma unroll
      for (int p = 0; p < parts; ++p) most = fmaxf(most, load_shared_float(number_at(p, r[half])));
      shift[half] = most == minus_infinity ? 0.0F : most * scale_log2;
      keep[half] = power_of_2(m[half] * scale_log2 - shift[half]);
      m[half] = most;
      l[half] *= keep[half];
    }
#pragma unroll
    for (int i = 0; i < part_keys / 2; i += 2) {
      const int half = i / 2 % 2;
      const float low = power_of_2(x[i] * scale_log2 - shift[half]);
      const float high = power_of_2(x[i + 1] * scale_log2 - shift[half]);
      l[half] += low + high;
      store_shared(probabilities() + r[half] * row_pitch<keys> +
                       2 * (part * part_keys + i / 4 * 8 + lane % 4 * 2),
                   pack<Element>(low, high));
    }
    __syncthreads();
  }

  // o[16, part_cols] += p[16, keys] v[keys, this part's columns].
  FUSELINE_DEVICE void add_values(float (&o)[part_cols / 2], u32 from) const {
    const u32 v = from + lane % 16 * row_pitch<d> + 2 * (first + part * part_cols) + lane / 16 * 16;
#pragma unroll
    for (int j = 0; j < keys / 16; ++j) {
      u32 a[4];
      load_a<keys>(a, probabilities() + strip * 16 * row_pitch<keys>, j);
#pragma unroll
      for (int i = 0; i < part_cols / 16; ++i) {
        u32 words[4];
        ldmatrix_x4_transposed(words, v + 16 * j * row_pitch<d> + 32 * i);
        mma_16x8x16<Element>(reinterpret_cast<float(&)[4]>(o[8 * i]), a, words[0], words[1]);
        mma_16x8x16<Element>(reinterpret_cast<float(&)[4]>(o[8 * i + 4]), a, words[2], words[3]);
      }
    }
  }

  // ---- the end ----

  FUSELINE_DEVICE void sum_parts(float (&l)[2]) const {
    __syncthreads();  // the last maxima have been read
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      l[half] = quad_sum(l[half]);
      if (lane % 4 == 0) store_shared(number_at(part, strip * 16 + lane / 4 + 8 * half), l[half]);
    }
    __syncthreads();
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      l[half] = 0.0F;
#pragma unroll
      for (int p = 0; p < parts; ++p)
        l[half] += load_shared_float(number_at(p, strip * 16 + lane / 4 + 8 * half));
    }
  }

  FUSELINE_DEVICE float* partial(int of_split, int r) const {
    return args.partial +
           ((static_cast<long long>(tile) * args.splits + of_split) * rows + r) * pitch;
  }
  FUSELINE_DEVICE void leave(const float (&o)[part_cols / 2], const float (&m)[2],
                             const float (&l)[2]) const {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int r = strip * 16 + lane / 4 + 8 * half;
      if (row(r) >= all_rows()) continue;
      const int col = part * part_cols + lane % 4 * 2;
      if (args.splits > 1) {
        float* to = partial(split, r);
#pragma unroll
        for (int j = 0; j < part_cols / 8; ++j)
          *reinterpret_cast<float2*>(to + col + 8 * j) =
              make_float2(o[4 * j + 2 * half], o[4 * j + 2 * half + 1]);
        if (part == 0 && lane % 4 == 0)
          *reinterpret_cast<float2*>(to + dv) = make_float2(m[half], l[half]);
        continue;
      }
      const float by = l[half] > 0.0F ? 1.0F / l[half] : 0.0F;
      Element* y = args.y + result_row(r) * args.y_ld + head(r) * dv + col;
#pragma unroll
      for (int j = 0; j < part_cols / 8; ++j)
        *reinterpret_cast<u32*>(y + 8 * j) =
            pack<Element>(o[4 * j + 2 * half] * by, o[4 * j + 2 * half + 1] * by);
      if (part == 0 && lane % 4 == 0) write_sum(r, m[half], l[half]);
    }
  }
  FUSELINE_DEVICE void write_sum(int r, float m, float l) const {
    if (args.log_sum_exp == nullptr) return;
    const AttentionShape& s = args.shape;
    args.log_sum_exp[((static_cast<long long>(batch) * s.heads + head(r)) * s.q_tokens + token(r)) *
                     args.log_sum_exp_ld] = l > 0.0F ? m * s.scale + logf(l) : minus_infinity;
  }
};

// The body of a kernel with AttentionWide::threads threads, AttentionWide::shared_bytes of dynamic
// shared memory and decode_tiles(shape, rows) · splits thread blocks.
template <class Wide>
FUSELINE_DEVICE void attention_wide(const typename Wide::Args& args) {
  extern __shared__ __align__(16) unsigned char shared_16[];
  Wide(args, shared_address(shared_16), static_cast<int>(blockIdx.x)).run();
}

// The launch behind it where splits > 1: a thread block of 128 threads for each row of every tile
// adds the splits in their order.
template <class Wide, class Element>
FUSELINE_DEVICE void attention_wide_join(const AttentionWideArgs<Element>& args) {
  __shared__ float2 of[most_splits];  // maximum and sum of exponentials
  const int r = static_cast<int>(blockIdx.x) % Wide::tile_rows;
  const Wide place(args, 0, static_cast<int>(blockIdx.x) / Wide::tile_rows * args.splits);
  if (place.row(r) >= place.all_rows()) return;
  const int thread = static_cast<int>(threadIdx.x);
  if (thread < args.splits)
    of[thread] = *reinterpret_cast<const float2*>(place.partial(thread, r) + Wide::value_cols);
  __syncthreads();
  const float scale_log2 = args.shape.scale * log2_of_e;
  float m = minus_infinity, l = 0.0F;
  for (int p = 0; p < args.splits; ++p) m = fmaxf(m, of[p].x);
  const auto weight = [&](int p) {
    return of[p].x == minus_infinity ? 0.0F : power_of_2((of[p].x - m) * scale_log2);
  };
  for (int p = 0; p < args.splits; ++p) l += weight(p) * of[p].y;
  const float by = l > 0.0F ? 1.0F / l : 0.0F;
  for (int c = 4 * thread; c < Wide::value_cols; c += 4 * 128) {
    float4 x = make_float4(0.0F, 0.0F, 0.0F, 0.0F);
#pragma unroll 8
    for (int p = 0; p < args.splits; ++p) {
      const float w = weight(p);
      const float4 y = *reinterpret_cast<const float4*>(place.partial(p, r) + c);
      x.x += w * y.x;
      x.y += w * y.y;
      x.z += w * y.z;
      x.w += w * y.w;
    }
    *reinterpret_cast<uint2*>(args.y + place.result_row(r) * args.y_ld +
                              place.head(r) * Wide::value_cols + c) =
        make_uint2(pack<Element>(x.x * by, x.y * by), pack<Element>(x.z * by, x.w * by));
  }
  if (thread == 0) place.write_sum(r, m, l);
}

}  // namespace fuseline::gpu
