// Attention of a few new queries (T of 1 to about 16) against a long cache: the time is that of
// reading the keys and values once. So
//
//   * all queries that share a key head form one tile of 16 rows for the tensor cores: T tokens of
//     H / Hkv heads (more than 16 take several tiles, which meet in L2);
//   * the keys of one head are split over `splits` thread blocks, so that every SM reads;
//   * a warp has a ring of its own in shared memory with 16 keys and values a stage, filled by
//     cp.async one or two stages ahead: warps never wait for each other until the end.
//
// Then the four warps' results are joined, and of the thread blocks of one tile the last to arrive
// joins the splits, in their order: the result does not depend on who was last. One launch, any
// architecture from sm_80 on, d a multiple of 16.
#pragma once

#include "code_rows.cuh"
#include "decode_work.cuh"
#include "mma_tiles.cuh"
#include "online_softmax.cuh"

namespace fuseline::gpu {

// `Stored`: what keys and values are stored in, Element or codes of a byte.
template <class Element, class Stored = Element>
struct AttentionDecodeArgs {
  const Element* q;  // first columns
  const Stored *k, *v;
  long long q_ld, k_ld, v_ld, y_ld;
  Element* y;
  float* log_sum_exp;  // or null
  AttentionShape shape;
  int splits;
  // Used when splits > 1. partial: decode_partial_floats() numbers. arrivals: one for each of
  // decode_tiles(), 0 before and after every launch.
  float* partial;
  u32* arrivals;
  int log_sum_exp_ld = 1;  // numbers from one row's to the next
  int scale_ld = 1;
  // Of codes: a number for each head of each key, or null for 1.
  const float *k_scale = nullptr, *v_scale = nullptr;
  ScoreBias<Element> bias{};
};

// Stages of the ring: two let more thread blocks share a GPU's smaller shared memory.
template <class Element, int d, int dv = d, int stages_ = 3, bool capped = false,
          class Stored = Element, bool biased = false>
struct AttentionDecode {
  static_assert(d % 16 == 0 && d <= 256 && dv % 16 == 0 && dv <= 256, "head width");
  using Args = AttentionDecodeArgs<Element, Stored>;
  static constexpr bool codes = sizeof(Stored) == 1;
  static constexpr int warps = 4, threads = 32 * warps;
  static constexpr int keys = 16;  // of a stage
  static constexpr int key_bytes = keys * (codes ? d : row_pitch<d>);
  static constexpr int stage_bytes = key_bytes + keys * (codes ? dv : row_pitch<dv>);
  static constexpr int stages = stages_;
  // Behind the ring of codes: one stage as numbers.
  static constexpr int number_bytes = codes ? keys * (row_pitch<d> + row_pitch<dv>) : 0;
  // At the end the warps' results lie there: 16 rows of dv sums, their maximum score, their sum.
  static constexpr int pitch = dv + 4;
  static constexpr int result_floats = decode_rows * pitch;
  static constexpr int weight_floats = decode_rows * (most_splits + 2);  // behind the first result
  static constexpr int result_bytes = (result_floats + weight_floats) * 4;
  static_assert(codes || result_bytes <= stages * stage_bytes, "all in the ring's place");
  static constexpr int warp_bytes = max_of(stages * stage_bytes + number_bytes, result_bytes);
  static constexpr int shared_bytes = warps * warp_bytes;

  const Args& args;
  unsigned char* shared;
  int tile, split;  // of the launch
  int batch, kv_head, row_tile;
  int rows;  // of the tile

  FUSELINE_DEVICE AttentionDecode(const Args& a, unsigned char* s)
      : args(a),
        shared(s),
        tile(static_cast<int>(blockIdx.x) / a.splits),
        split(static_cast<int>(blockIdx.x) % a.splits) {
    const int row_tiles = decode_row_tiles(args.shape);
    row_tile = tile % row_tiles;
    kv_head = tile / row_tiles % args.shape.kv_heads;
    batch = tile / row_tiles / args.shape.kv_heads;
    rows =
        min_of(decode_rows, args.shape.q_tokens * args.shape.shared_by() - row_tile * decode_rows);
  }

  // Row r of the tile is query `token` of head `head`.
  FUSELINE_DEVICE int token(int r) const {
    return (row_tile * decode_rows + r) % args.shape.q_tokens;
  }
  FUSELINE_DEVICE int head(int r) const {
    return kv_head * args.shape.shared_by() + (row_tile * decode_rows + r) / args.shape.q_tokens;
  }

  FUSELINE_DEVICE void run() const {
    float o[dv / 2];
#pragma unroll
    for (float& x : o) x = 0.0F;
    OnlineSoftmax softmax;
    read_keys(o, softmax);
    cp_async_wait<0>();
    softmax.finish();
    share(o, softmax);
    __syncthreads();
    const auto of_warp = [&](int w) { return reinterpret_cast<float*>(shared + w * warp_bytes); };
    weigh(warps, of_warp);
    if (args.splits == 1) {
      write(warps, of_warp);
      return;
    }
    leave_partial(of_warp);
    if (!arrived_last()) return;
    const auto of_split = [&](int p) { return partial(p); };
    weigh(args.splits, of_split);
    write(args.splits, of_split);
  }

  // ---- this warp's share of the keys ----

  FUSELINE_DEVICE void read_keys(float (&o)[dv / 2], OnlineSoftmax& softmax) const {
    const AttentionShape& s = args.shape;
    const int warp = static_cast<int>(threadIdx.x / 32), lane = static_cast<int>(threadIdx.x % 32);
    const u32 ring = shared_address(shared) + warp * warp_bytes;
    const long long first_row = static_cast<long long>(batch) * s.kv_rows;
    const HeadRows<Stored> k{args.k + first_row * args.k_ld + kv_head * d, args.k_ld};
    const HeadRows<Stored> v{args.v + first_row * args.v_ld + kv_head * dv, args.v_ld};
    // Chunks of 16 keys that any query sees, this split's part of them, every fourth.
    const int begin = s.first_key(0) / keys;
    const int chunks = max_of(0, ceil_div(s.end_key(s.q_tokens - 1), keys) - begin);
    const int end =
        begin + static_cast<int>(static_cast<long long>(chunks) * (split + 1) / args.splits);
    int chunk =
        begin + static_cast<int>(static_cast<long long>(chunks) * split / args.splits) + warp;
    const auto fetch = [&](int which, int stage) {
      if (which < end) {
        const u32 to = ring + stage * stage_bytes;
        if constexpr (codes) {
          fetch_codes<d, keys>(to, k, which * keys, s.kv_tokens);
          fetch_codes<dv, keys>(to + key_bytes, v, which * keys, s.kv_tokens);
        } else {
          fetch_rows<d, keys, 32>(to, k, which * keys, s.kv_tokens, lane);
          fetch_rows<dv, keys, 32>(to + key_bytes, v, which * keys, s.kv_tokens, lane);
        }
      }
      cp_async_commit();
    };
#pragma unroll
    for (int i = 0; i < stages - 1; ++i) fetch(chunk + warps * i, i);

    u32 q[d / 16][4];
    load_queries(q, lane);
    const int t[2] = {token(lane / 4), token(lane / 4 + 8)};
    int stage = 0;
    KeyScales scales = scales_of(chunk);
    for (; chunk < end; chunk += warps) {
      const KeyScales next = scales_of(chunk + warps);
      cp_async_wait<stages - 2>();
      __syncwarp();
      fetch(chunk + warps * (stages - 1), stage == 0 ? stages - 1 : stage - 1);
      u32 from = ring + stage * stage_bytes;
      u32 values = from + key_bytes;
      if constexpr (codes) {
        const u32 numbers = ring + stages * stage_bytes;
        numbers_of_codes<Element, Stored, d, keys>(numbers, from);
        numbers_of_codes<Element, Stored, dv, keys>(numbers + keys * row_pitch<d>, values);
        from = numbers;
        values = numbers + keys * row_pitch<d>;
        __syncwarp();
      }
      step(o, softmax, q, t, chunk, from, values, scales);
      __syncwarp();
      scales = next;
      stage = stage + 1 == stages ? 0 : stage + 1;
    }
  }
  // Of the keys whose scores this thread has, loaded a chunk ahead.
  struct KeyScales {
    float of_key[codes ? 4 : 1], of_value[codes ? 4 : 1];
    static FUSELINE_DEVICE void multiply(float (&x)[keys / 2], const float (&by)[codes ? 4 : 1]) {
#pragma unroll
      for (int i = 0; i < keys / 2; ++i) x[i] *= by[i / 4 * 2 + i % 2];
    }
  };
  // The keys and values of one chunk, of this tile's queries q of tokens t.
  FUSELINE_DEVICE void step(float (&o)[dv / 2], OnlineSoftmax& softmax, const u32 (&q)[d / 16][4],
                            const int (&t)[2], int chunk, u32 from, u32 values,
                            const KeyScales& scales) const {
    const AttentionShape& s = args.shape;
    const int lane = static_cast<int>(threadIdx.x % 32);
    float x[keys / 2];
    multiply_rows<Element, d, keys>(x, q, from);
    if constexpr (codes) scales.multiply(x, scales.of_key);
    if constexpr (capped) cap_scores(x, s);
    if constexpr (biased) {
#pragma unroll
      for (int i = 0; i < keys / 2; ++i) {
        const int r = lane / 4 + 8 * (i / 2 % 2);
        const int key = chunk * keys + i / 4 * 8 + lane % 4 * 2 + i % 2;
        if (r < rows) x[i] += args.bias.unscaled(s, head(r), token(r), key);
      }
    }
    // Few chunks hold keys that some query does not see.
    if ((chunk + 1) * keys > s.end_key(0) || chunk * keys < s.first_key(s.q_tokens - 1)) {
#pragma unroll
      for (int i = 0; i < keys / 2; ++i) {
        const int key = chunk * keys + i / 4 * 8 + lane % 4 * 2 + i % 2;
        const int row_token = t[i / 2 % 2];
        if (key >= s.end_key(row_token) || key < s.first_key(row_token)) x[i] = minus_infinity;
      }
    }
    float keep[2];
    softmax.step(x, s.scale * log2_of_e, keep);
    // And few hold a row's largest score so far.
    if (__any_sync(0xffffffffU, keep[0] != 1.0F || keep[1] != 1.0F)) scale_rows(o, keep);
    if constexpr (codes) scales.multiply(x, scales.of_value);
    accumulate_rows<Element, dv, keys>(o, x, values);
  }
  FUSELINE_DEVICE KeyScales scales_of(int chunk) const {
    KeyScales scales;
    if constexpr (codes) {
      const int lane = static_cast<int>(threadIdx.x % 32);
      const long long first_row = static_cast<long long>(batch) * args.shape.kv_rows;
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const int key =
            min_of(chunk * keys + i / 2 * 8 + lane % 4 * 2 + i % 2, args.shape.kv_tokens - 1);
        const long long at = (first_row + key) * args.scale_ld + kv_head;
        scales.of_key[i] = args.k_scale != nullptr ? args.k_scale[at] : 1.0F;
        scales.of_value[i] = args.v_scale != nullptr ? args.v_scale[at] : 1.0F;
      }
    }
    return scales;
  }
  FUSELINE_DEVICE void load_queries(u32 (&q)[d / 16][4], int lane) const {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int r = lane / 4 + 8 * half;
      const bool exists = r < rows;
      const Element* row =
          args.q +
          (static_cast<long long>(batch) * args.shape.q_tokens + (exists ? token(r) : 0)) *
              args.q_ld +
          (exists ? head(r) : 0) * d + lane % 4 * 2;
#pragma unroll
      for (int i = 0; i < d / 16; ++i)
#pragma unroll
        for (int part = 0; part < 2; ++part)
          q[i][2 * part + half] =
              exists ? *reinterpret_cast<const u32*>(row + 16 * i + 8 * part) : 0U;
    }
  }

  // ---- joining parts: warps of a block, then splits ----

  FUSELINE_DEVICE float* partial(int p) const {
    return args.partial + (static_cast<long long>(tile) * args.splits + p) * result_floats;
  }
  // Row r's weight of part p at 16 p + r; then 16 maxima; then 16 sums.
  FUSELINE_DEVICE float* weights() const {
    return reinterpret_cast<float*>(shared) + result_floats;
  }
  FUSELINE_DEVICE float* row_max() const { return weights() + decode_rows * most_splits; }
  FUSELINE_DEVICE float* row_sum() const { return row_max() + decode_rows; }

  FUSELINE_DEVICE void share(const float (&o)[dv / 2], const OnlineSoftmax& softmax) const {
    const int lane = static_cast<int>(threadIdx.x % 32);
    __syncwarp();
    float* to = reinterpret_cast<float*>(shared + threadIdx.x / 32 * warp_bytes);
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      float* row = to + (lane / 4 + 8 * half) * pitch;
#pragma unroll
      for (int j = 0; j < dv / 8; ++j)
        *reinterpret_cast<float2*>(row + 8 * j + lane % 4 * 2) =
            make_float2(o[4 * j + 2 * half], o[4 * j + 2 * half + 1]);
      if (lane % 4 == 0) {
        row[dv] = softmax.m[half];
        row[dv + 1] = softmax.l[half];
      }
    }
  }

  // Each part's weight relative to the row's maximum over `count` parts, and the row's sum. Eight
  // lanes a row; all their loads are under way at once.
  template <class Part>
  FUSELINE_DEVICE void weigh(int count, Part&& part) const {
    constexpr int each = most_splits / 8;
    const float scale_log2 = args.shape.scale * log2_of_e;
    const int r = static_cast<int>(threadIdx.x / 8), first = static_cast<int>(threadIdx.x % 8);
    float2 of[each];  // maximum and sum
#pragma unroll
    for (int i = 0; i < each; ++i) {
      of[i] = make_float2(minus_infinity, 0.0F);
      if (first + 8 * i < count)
        of[i] = *reinterpret_cast<const float2*>(part(first + 8 * i) + r * pitch + dv);
    }
    float m = minus_infinity;
#pragma unroll
    for (int i = 0; i < each; ++i) m = fmaxf(m, of[i].x);
#pragma unroll
    for (int apart = 1; apart < 8; apart *= 2) m = fmaxf(m, __shfl_xor_sync(0xffffffffU, m, apart));
    float sum = 0.0F;
#pragma unroll
    for (int i = 0; i < each; ++i) {
      const float w = of[i].x == minus_infinity ? 0.0F : power_of_2((of[i].x - m) * scale_log2);
      if (first + 8 * i < count) weights()[decode_rows * (first + 8 * i) + r] = w;
      sum += w * of[i].y;
    }
#pragma unroll
    for (int apart = 1; apart < 8; apart *= 2) sum += __shfl_xor_sync(0xffffffffU, sum, apart);
    if (first == 0) {
      row_max()[r] = m;
      row_sum()[r] = sum;
    }
    __syncthreads();
  }
  // Columns c to c + 3 of row r over all parts.
  template <class Part>
  FUSELINE_DEVICE float4 join(int count, Part&& part, int r, int c) const {
    float4 x = make_float4(0.0F, 0.0F, 0.0F, 0.0F);
#pragma unroll 16
    for (int p = 0; p < count; ++p) {
      const float w = weights()[decode_rows * p + r];
      const float4 y = *reinterpret_cast<const float4*>(part(p) + r * pitch + c);
      x.x += w * y.x;
      x.y += w * y.y;
      x.z += w * y.z;
      x.w += w * y.w;
    }
    return x;
  }
  template <class Part>
  FUSELINE_DEVICE void leave_partial(Part&& of_warp) const {
    float* to = partial(split);
    for (int i = static_cast<int>(threadIdx.x); i < rows * dv / 4; i += threads) {
      const int r = i / (dv / 4), c = i % (dv / 4) * 4;
      *reinterpret_cast<float4*>(to + r * pitch + c) = join(warps, of_warp, r, c);
    }
    if (threadIdx.x < decode_rows) {  // all rows: the last block weighs them all
      to[threadIdx.x * pitch + dv] = row_max()[threadIdx.x];
      to[threadIdx.x * pitch + dv + 1] = row_sum()[threadIdx.x];
    }
  }
  // Whether all other splits of this tile have left their partial results.
  FUSELINE_DEVICE bool arrived_last() const {
    __shared__ bool last;
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0) {
      last = atomicAdd(args.arrivals + tile, 1U) + 1 == static_cast<u32>(args.splits);
      if (last) args.arrivals[tile] = 0;
    }
    __syncthreads();
    if (last) __threadfence();
    return last;
  }
  template <class Part>
  FUSELINE_DEVICE void write(int count, Part&& part) const {
    const AttentionShape& s = args.shape;
    for (int i = static_cast<int>(threadIdx.x); i < rows * dv / 4; i += threads) {
      const int r = i / (dv / 4), c = i % (dv / 4) * 4;
      const float sum = row_sum()[r];
      const float by = sum > 0.0F ? 1.0F / sum : 0.0F;
      const float4 x = join(count, part, r, c);
      const long long row = static_cast<long long>(batch) * s.q_tokens + token(r);
      *reinterpret_cast<uint2*>(args.y + row * args.y_ld + head(r) * dv + c) =
          make_uint2(pack<Element>(x.x * by, x.y * by), pack<Element>(x.z * by, x.w * by));
    }
    const int r = static_cast<int>(threadIdx.x);
    if (r < rows && args.log_sum_exp != nullptr)
      args.log_sum_exp[((static_cast<long long>(batch) * s.heads + head(r)) * s.q_tokens +
                        token(r)) *
                       args.log_sum_exp_ld] =
          row_sum()[r] > 0.0F ? row_max()[r] * s.scale + logf(row_sum()[r]) : minus_infinity;
  }
};

// The body of a kernel with AttentionDecode::threads threads, AttentionDecode::shared_bytes of
// dynamic shared memory and decode_tiles() · splits thread blocks.
template <class Element, int d, int dv = d, int stages = 3, bool capped = false,
          class Stored = Element, bool biased = false>
FUSELINE_DEVICE void attention_decode(const AttentionDecodeArgs<Element, Stored>& args) {
  extern __shared__ __align__(16) unsigned char shared_16[];
  AttentionDecode<Element, d, dv, stages, capped, Stored, biased>(args, shared_16).run();
}

}  // namespace fuseline::gpu
